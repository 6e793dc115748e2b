"""The interface of ``partitioner.class``, and Kafka's RoundRobinPartitioner."""

from __future__ import annotations

from typing import Any, Protocol

from aioproducer.types import TopicPartitions


class Partitioner(Protocol):
    """Chooses the partition of each record that does not name one, with or without a key.

    Called when the record is sent or, if its topic is unknown, as soon as that is known; in order, once for each
    record. A plain callable with the same parameters works as well. A partitioner may have a ``close()``, which is
    called once, after the producer has closed.
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

        ``key`` and ``value`` are as they were sent, ``key_bytes`` and ``value_bytes`` as they were serialized. If it
        returns anything but an index, or raises, the record's delivery fails with PartitionerException.
        """
        ...


class RoundRobinPartitioner:
    """Sends each record of a topic to the next partition that has a leader, whatever its key (Kafka's class)."""

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
