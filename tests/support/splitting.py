"""Splits batches without an event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.batches.split import Cut


def split(batch: ProducerBatch, records: bytes, target: int, apart: Sequence[int] = ()) -> list[ProducerBatch]:
    """The children of a batch, all steps at once."""
    cut = Cut(batch, lambda: records, target, apart)
    while not cut.step():
        pass
    return cut.children()


def at_once(queue: PartitionQueue, batch: ProducerBatch, step: Callable[[], bool]) -> None:
    """Does in no slices what is to be done in slices."""
    while not step():
        pass
