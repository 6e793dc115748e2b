"""One partition of a broker as Kafka has it for its producers: small, and written from Kafka's rules alone.

``ProducerStateManager``, ``ProducerStateEntry`` and ``ProducerAppendInfo`` of Apache Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_producers import ProducerState
from aioproducer.records.record_batch import RecordBatch

RETAINED = 5
"""Batches of a producer that a leader remembers, unless it says otherwise (KIP-1269)."""


class Request(NamedTuple):
    """What a broker sees of a batch."""

    producer_id: int
    epoch: int
    first_sequence: int
    values: tuple[bytes, ...]

    @property
    def last_sequence(self) -> int:
        return (self.first_sequence + len(self.values) - 1) % 2**31


def seen(data: bytes) -> Request:
    """A batch's bytes; values count as far as their first 8 bytes."""
    read = RecordBatch(data)
    read.verify()
    values = tuple((record.value or b"")[:8] for record in read.records())
    return Request(read.producer_id, read.producer_epoch, read.base_sequence, values)


@dataclass
class Entry:
    """A producer: its epoch, and the last batches of it, each with its offset."""

    epoch: int
    batches: list[tuple[int, int, int]] = field(default_factory=list)


class Partition:
    """The log, and what is remembered of each producer."""

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self.entries: dict[int, Entry] = {}

    def check(self, request: Request, remembered: int = RETAINED) -> tuple[ErrorCode, int]:
        """What a batch is answered, with the offset of a duplicate; NONE and -1 if it may be appended."""
        entry = self.entries.get(request.producer_id)
        if entry is None:
            return ErrorCode.NONE, -1  # of a producer that is not known, any sequence may be the first
        if request.epoch == entry.epoch:
            for first, last, offset in entry.batches[-remembered:]:
                if (first, last) == (request.first_sequence, request.last_sequence):
                    return ErrorCode.NONE, offset
        if request.epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        goes_on = request.epoch == entry.epoch and entry.batches
        expected = (entry.batches[-1][1] + 1) % 2**31 if goes_on else 0
        if request.first_sequence != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        return ErrorCode.NONE, -1

    def produce(self, request: Request, remembered: int = RETAINED) -> tuple[ErrorCode, int]:
        """Appends a batch if it may be; the answer, and the offset of its first record."""
        code, offset = self.check(request, remembered)
        if code is not ErrorCode.NONE or offset >= 0:
            return code, offset
        offset = len(self.log)
        self.log += request.values
        if request.producer_id < 0:  # not idempotent: nothing is remembered
            return code, offset
        entry = self.entries.get(request.producer_id)
        if entry is None or entry.epoch != request.epoch:
            entry = self.entries[request.producer_id] = Entry(request.epoch)
        entry.batches.append((request.first_sequence, request.last_sequence, offset))
        return code, offset

    def forget(self, remembered: int) -> None:
        """No more than these batches of each producer are remembered from now on."""
        for entry in self.entries.values():
            del entry.batches[:-remembered]

    def bump(self, producer_id: int, epoch: int) -> None:
        """A marker of the next epoch is written: sequences begin anew, and earlier epochs are over."""
        self.entries[producer_id] = Entry(epoch)


def states_of(partition: Partition) -> list[ProducerState]:
    """What it answers to DescribeProducers."""
    return [
        ProducerState(producer_id, entry.epoch, entry.batches[-1][1] if entry.batches else -1)
        for producer_id, entry in partition.entries.items()
    ]
