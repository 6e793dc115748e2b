"""The batches of one partition that are not resolved yet."""

from __future__ import annotations

import math
from collections import deque
from typing import final

from mypy_extensions import i64, mypyc_attr

from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.diagnosis.value_history import ValueHistory
from aioproducer.producer.idempotence.sequences import PartitionSequences


@final
@mypyc_attr(acyclic=True)
class PartitionQueue:
    """Kafka's ``Deque<ProducerBatch>`` of a topic-partition, and what decides whether its head may be sent.

    ``open`` takes records; ``batches`` are frozen and in order, retries first. Batches under way are in neither: they
    are in their request.
    """

    def __init__(self, topic: str, partition: i64, sequences: PartitionSequences | None) -> None:
        self.topic = topic
        self.partition = partition
        self.open: ProducerBatch | None = None
        self.batches: deque[ProducerBatch] = deque()
        self.due = False
        """The open batch may be drained as it is: its linger is over, or a flush is under way."""
        self.close_at: float = 0.0
        """When the linger of the open batch is over."""
        self.deadline: float = math.inf
        """When to check that; may be the time of an earlier batch."""
        self.ready = False
        """It is in the ready set."""
        self.wanted_at: float = -math.inf
        """When the topic was last reported to metadata as in use."""
        self.used = False
        """It has had a batch."""
        self.busy = False
        """It is in the partitioner's list (``BuiltInPartitioner``)."""
        self.in_flight: i64 = 0
        self.leader: i64 = -1
        self.leader_epoch: i64 = -1
        self.sequences = sequences
        """None without idempotence."""
        self.history: ValueHistory[tuple[int, Reason]] | None = None
        """Its leader and what kept its head waiting, for the ledgers of time-outs; None while nothing has."""

    def depth(self) -> i64:
        """Batches waiting, the open one included."""
        return len(self.batches) + (0 if self.open is None else 1)

    def load(self) -> i64:
        """Bytes that wait, in units of batch.size. Every frozen batch counts like the last one, so that this costs the
        same however many there are."""
        load: i64 = 0 if self.open is None else self.open.worth()
        waiting: i64 = len(self.batches)
        return load if waiting == 0 else load + waiting * self.batches[-1].worth()

    def insert_retry(self, batch: ProducerBatch) -> None:
        """Puts a batch back in the order in which batches were first drained (``insertInSequenceOrder``).

        Batches with a sequence come before those that lost theirs: new sequences are given only when the old ones are
        resolved, so nothing may block those. Batches set aside come behind the batches whose answers will show whether
        they were appended. A part of a batch that was never drained comes before the others that were not.
        """
        earlier: list[ProducerBatch] = []
        batches = self.batches
        while batches and _goes_before(batches[0], batch):
            earlier.append(batches.popleft())
        batches.appendleft(batch)
        while earlier:
            batches.appendleft(earlier.pop())

    def put_in_order(self) -> None:
        """Moves batches that lost their sequences behind those that kept theirs."""
        drained: list[ProducerBatch] = []
        while self.batches and self.batches[0].drain_order >= 0:
            drained.append(self.batches.popleft())
        for batch in reversed(drained):
            self.insert_retry(batch)

    def __repr__(self) -> str:
        return f"<PartitionQueue {self.topic}-{self.partition} depth={self.depth()} leader={self.leader}>"


def _goes_before(one: ProducerBatch, other: ProducerBatch) -> bool:
    if one.drain_order < 0 or other.drain_order < 0:  # never drained yet
        return one.drain_order >= 0
    if one.has_sequence() != other.has_sequence():
        return one.has_sequence()
    if one.set_aside != other.set_aside:
        return other.set_aside
    return (one.drain_order, one.first) < (other.drain_order, other.first)
