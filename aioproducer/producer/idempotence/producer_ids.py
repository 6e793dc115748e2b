"""The identity of an idempotent producer, which brokers know its sequences by."""

from __future__ import annotations

from typing import NamedTuple


class ProducerIdAndEpoch(NamedTuple):
    """The identity that InitProducerId assigns."""

    producer_id: int
    epoch: int


class ProducerIds:
    """The identity from the last InitProducerId; ``None`` while there is no usable one."""

    def __init__(self, *, transactional: bool, patience: float, known_for: float) -> None:
        self.current: ProducerIdAndEpoch | None = None
        self.patience = patience
        """The age in seconds up to which a batch of old records waits for the attempts to send earlier batches."""
        self.known_for = known_for
        """Seconds after sending a batch for which its broker certainly knows the producer."""
        self.transactional = transactional
        """The coordinator assigns the epochs, one for all partitions."""
        self.transaction = 0
        """The number of the open transaction, or of the last one."""
        self.in_doubt = False
        """Sequences under the present epoch are in doubt: a transaction of the first protocol needs another one."""

    def given(self, identity: ProducerIdAndEpoch) -> None:
        self.current = identity
        self.in_doubt = False

    def used_up(self, identity: ProducerIdAndEpoch) -> None:
        """A partition has no epochs left under this producer id: another id is needed."""
        if self.transactional:
            return
        if self.current is not None and self.current.producer_id == identity.producer_id:
            self.current = None
