"""Splits a batch that is too large for its broker (``ProducerBatch.split``) or its line, or for some of its records.

The parts keep the order and exactly the batch's sequence numbers: the broker sees what it would have seen of the whole.
If an earlier attempt may have appended the whole, the parts record that. Rules only: no asyncio, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, final

from mypy_extensions import i64

from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.batches.buffer_pool import BatchBuffer
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.delivery.record_sizes import timestamp_delta_at
from aioproducer.records.batch_layout import BATCH_OVERHEAD, increment_sequence
from aioproducer.records.record_writer import MAX_RECORD_OVERHEAD
from aioproducer.records.written_records import WrittenRecords

MOST_CUTS: Final = 100
"""A batch with more changes between good and refused records fails as a whole, since each part takes its own
request."""

STEP: Final = 5_000
"""Records that are copied at once, in some 0.1 ms."""
STEP_BYTES: Final = 256 * 1024
"""Bytes likewise."""


def may_split(code: ErrorCode, batch: ProducerBatch) -> bool:
    """Whether to split the batch instead of failing it: a single record cannot be split.

    Java's producer fails a batch that is larger than a segment (RECORD_LIST_TOO_LARGE). Here it may be so large only
    because it has waited.
    """
    too_large = code is ErrorCode.MESSAGE_TOO_LARGE or code is ErrorCode.RECORD_LIST_TOO_LARGE
    return too_large and batch.count > 1


def cuts(batch: ProducerBatch, refused: Collection[int]) -> list[int]:
    """The borders between good records and those that the broker refuses for their content (KIP-467), ascending.

    None if there are no good records, or too many borders. Java's producer fails the good ones, too.
    """
    named = sorted(index for index in refused if 0 <= index < batch.count)
    if not named or len(named) == batch.count:
        return []
    here: list[int] = []
    for index in named:
        if here and here[-1] == index:
            here[-1] = index + 1
        else:
            here += [index, index + 1]
    return here[here[0] == 0 : len(here) - (here[-1] == batch.count)] if len(here) <= MOST_CUTS else []


def target_size(batch: ProducerBatch, limit: int) -> int:
    """The most bytes, uncompressed, for each child.

    ``limit`` is that of a new batch. A child never gets more than half of the refused bytes: so there are at least two
    children, and after as many splits as its size has bits each record is alone (KAFKA-8350).
    """
    return min(limit, batch.size() // 2)


@final
class Cut:
    """A batch that is being split, step by step. The first step calls ``records``, for its uncompressed records.

    Its children have ``target`` bytes at most, or one record, and none crosses a border in ``apart``. The batch may get
    other stamps between the steps: the children take them at the end.
    """

    def __init__(
        self, batch: ProducerBatch, records: Callable[[], bytes], target: int, apart: Sequence[int] = ()
    ) -> None:
        self._batch = batch
        self._records = records
        self._walk: WrittenRecords | None = None
        self._target: i64 = target
        self._borders = [*apart, int(batch.count)]
        self._index: i64 = 0
        self._child: ProducerBatch | None = None
        self._children: list[ProducerBatch] = []

    def step(self) -> bool:
        """Copies the next records, at most STEP of them or STEP_BYTES and one. Whether it was the last step."""
        batch, walk, index = self._batch, self._walk, self._index
        if walk is None:
            walk = self._walk = WrittenRecords(self._records())
        child = self._child
        if child is None:
            child = self._child = _child(batch, index)
        if index == self._borders[0]:
            self._borders.pop(0)
        border: i64 = self._borders[0]
        size = child.size()
        index = child.append_part(batch, walk, index, min(border, index + STEP), min(self._target, size + STEP_BYTES))
        self._index = index
        ended = index == batch.count
        if ended or index == border or child.size() + BATCH_OVERHEAD + MAX_RECORD_OVERHEAD + walk.rest > self._target:
            _ = child.freeze()
            self._children.append(child)
            self._child = None
        return ended

    def children(self) -> list[ProducerBatch]:
        """The children, after the last step: closed, and not sealed yet.

        They keep the batch's age, and its attempts without this one, if it was sent. ``first`` is their position in the
        batch that was drained.
        """
        for child in self._children:
            _inherit(child, self._batch)
        return self._children


def _child(batch: ProducerBatch, index: i64) -> ProducerBatch:
    """An empty batch for the records from ``index`` on."""
    parent = batch.result
    result = ProduceResult(parent.present_audience(), parent.topic, parent.partition)
    timestamp = batch.base_timestamp + timestamp_delta_at(batch.sizes, index)
    child = ProducerBatch(result, BatchBuffer(), 0, timestamp, batch.created)
    child.first = batch.first + index
    return child


def _inherit(child: ProducerBatch, batch: ProducerBatch) -> None:
    child.expected_ratio = batch.expected_ratio
    child.drain_order = batch.drain_order
    child.producer_id = batch.producer_id
    child.producer_epoch = batch.producer_epoch
    if batch.has_sequence():
        child.base_sequence = increment_sequence(batch.base_sequence, child.first - batch.first)
    child.ready_at = batch.ready_at
    child.attempts = max(batch.attempts - 1, 0)
    child.excused = batch.excused
    child.leader_epoch = batch.leader_epoch
    child.log = batch.log
    child.maybe_appended = batch.maybe_appended
    child.maybe_before = batch.maybe_before
    child.arrives_until = batch.arrives_until
    child.reshaped = batch.maybe_appended or batch.reshaped
