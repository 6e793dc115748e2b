"""What ``partitioner.class`` may be, and the partitioner that Kafka has beside its built-in one."""

from __future__ import annotations

from typing import Any, Protocol

from aioproducer.types import TopicPartitions


class Partitioner(Protocol):
    """Chooses the partition of each record that does not name one, with or without a key.

    Called where the record is sent, or, while its topic is unknown, as soon as it is known; in order, one call for each
    record. A plain callable with the same parameters will do as well. It may have a ``close()``, called once when the
    producer has closed.
    """

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        partitions: TopicPartitions,
    ) -> int:
        """The index of one of ``partitions``.

        ``key`` and ``value`` are as they were sent, ``key_bytes`` and ``value_bytes`` as they were serialized.
        Anything else than an index, and whatever is raised, fails the record's delivery with PartitionerException.
        """
        ...


class RoundRobinPartitioner:
    """Each record of a topic goes to the next partition that has a leader, whatever its key (Kafka's class)."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        partitions: TopicPartitions,
    ) -> int:
        turn = self._turns.get(topic, 0)
        self._turns[topic] = turn + 1
        candidates = partitions.available or partitions
        return candidates[turn % len(candidates)].partition
