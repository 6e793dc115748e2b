"""Keeps which records of a bulk send are in which batches, and their outcomes.

A batch may hold records of several bulk sends and of single ones between them. So a call has a *span* for each of its
runs of neighbours within a batch: one entry, however many records, that is notified of the batch's end.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

from mypy_extensions import i64

from aioproducer.errors import DeliveryError
from aioproducer.producer.bulk.result import BulkResult, OffsetRange
from aioproducer.producer.delivery.produce_result import FORWARDED, SPAN, SUCCEEDED, Loop, ProduceResult
from aioproducer.producer.diagnosis.failure_log import FailedRun
from aioproducer.types import TopicPartition

if TYPE_CHECKING:
    # Compiled code reaches these through librt's C interface; interpreted code never uses them (see record_writer.py).
    from librt.strings import BytesWriter, read_i64_le, write_i64_le


@final
class Indices:
    """Indices in the call, 8 bytes each: kept for a span whose records do not follow each other in the call."""

    def __init__(self) -> None:
        self._writer = BytesWriter()

    def append(self, index: i64, count: i64) -> None:
        """Appends ``count`` indices from ``index`` on."""
        end = index + count
        while index < end:
            write_i64_le(self._writer, index)
            index += 1

    def part(self, begin: i64, end: i64) -> list[int]:
        packed = self._writer.getvalue()
        indices: list[int] = []
        at = begin
        while at < end:
            indices.append(read_i64_le(packed, at * 8))
            at += 1
        return indices


if hasattr(Indices.append, "__code__") and not TYPE_CHECKING:
    # Interpreted: a native method has no code object.
    class Indices:
        def __init__(self) -> None:
            self._array = array("q")

        def append(self, index: int, count: int) -> None:
            self._array.extend(range(index, index + count))

        def part(self, begin: int, end: int) -> list[int]:
            return self._array[begin:end].tolist()


@final
class Span:
    """Neighbours within a batch: ``count`` records from ``first`` on; the first is number ``start`` of the call.

    It is a waiter of the batch's result, and so has the methods of a future.
    """

    def __init__(self, tally: BulkTally, result: ProduceResult, first: i64, count: i64, start: i64) -> None:
        self.result = result
        self.first = first
        self.count = count
        self.start = start
        self.others: Indices | None = None
        """The indices of all records, unless they simply follow the first one's."""
        self._tally = tally

    def extend(self, index: i64, count: i64) -> None:
        """Adds ``count`` records, from number ``index`` of the call on."""
        others = self.others
        if others is None:
            if index == self.start + self.count:
                self.count += count
                return
            others = self.others = Indices()
            others.append(self.start, self.count)
        others.append(index, count)
        self.count += count

    def places(self, begin: i64, end: i64) -> Sequence[int]:
        """The indices in the call of this span's records from ``begin`` to before ``end``."""
        others = self.others
        return range(self.start + begin, self.start + end) if others is None else others.part(begin, end)

    def done(self) -> bool:
        """The call no longer needs the outcome."""
        return self._tally.abandoned

    def set_result(self, _: None) -> None:
        """The batch has ended or was split, or the parked record has joined a batch."""
        self._tally.span_ended(self)


@final
class BulkTally:
    """The account of one call."""

    def __init__(self, loop: Loop) -> None:
        self.abandoned = False
        """The caller is gone; its records stay under way."""
        self._loop = loop
        self._latest: list[Span | None] = []
        self._last: Span | None = None
        self._pending: i64 = 0
        self._delivered: i64 = 0
        self._offsets: dict[tuple[str, int], OffsetRange] = {}
        self._failed_runs: list[FailedRun] = []
        self._complete: Any = None

    def took(self, result: ProduceResult, first: i64, index: i64, count: i64 = 1) -> None:
        """Adds records from number ``index`` of the call on, which are in that batch from ``first`` on."""
        span = self._last
        if span is None or span.result is not result:
            partition = result.partition
            span = self._latest[partition] if 0 <= partition < len(self._latest) else None
            self._last = span
        if span is not None and span.result is result and span.first + span.count == first:
            span.extend(index, count)
        else:
            self._add(Span(self, result, first, count, index))

    def _add(self, span: Span) -> None:
        self._pending += 1
        result = span.result
        partition = result.partition
        if partition >= 0:
            while partition >= len(self._latest):
                self._latest.append(None)
            self._latest[partition] = span
        self._last = span
        result.add_waiter(SPAN, span)

    def refused(self, indices: Sequence[int], error: DeliveryError) -> None:
        """Adds the error of records that were never in a batch."""
        self._failed_runs.append((indices, error))

    def span_ended(self, span: Span) -> None:
        """The span's batch has ended, or its records have moved."""
        result = span.result
        if result.state == FORWARDED:
            self._follow(span)
        elif result.state == SUCCEEDED:
            self._count_delivered(span)
        else:
            self._count_failed(span)
        self._pending -= 1
        complete = self._complete
        if self._pending == 0 and complete is not None and not complete.done():  # not if its task was cancelled
            complete.set_result(None)

    def _follow(self, span: Span) -> None:
        """Moves a span to the children of a split batch, or a parked record to its batch."""
        targets = span.result.targets
        end = span.first + span.count
        for number in range(len(targets)):
            begins, child, there = targets[number]
            ends: i64 = targets[number + 1][0] if number + 1 < len(targets) else end
            begin = begins if begins > span.first else span.first
            if ends > end:
                ends = end
            if begin >= ends:
                continue
            places = span.places(begin - span.first, ends - span.first)
            part = Span(self, child, there + begin - begins, 1, places[0])
            for place in places[1:]:
                part.extend(place, 1)
            self._add(part)

    def _count_delivered(self, span: Span) -> None:
        result = span.result
        self._delivered += span.count
        where = TopicPartition(result.topic, result.partition)
        first: i64 = result.base_offset + span.first if result.base_offset >= 0 else -1
        last: i64 = first + span.count - 1 if first >= 0 else -1
        records = span.count
        known = self._offsets.get(where)
        if known is not None:
            records += known.records
            if known.last > last:
                last = known.last
            if first < 0 or 0 <= known.first < first:
                first = known.first
        self._offsets[where] = OffsetRange(first, last, records)

    def _count_failed(self, span: Span) -> None:
        result = span.result
        error = result.error
        if error is not None and error.refused_records:  # each record gets its own part of the error
            at: i64 = 0
            while at < span.count:
                self._failed_runs.append((span.places(at, at + 1), result.raised(span.first + at)))
                at += 1
        else:
            self._failed_runs.append((span.places(0, span.count), result.raised(span.first)))

    def complete(self) -> Any:
        """A future that is done when every record added so far has ended."""
        future = self._loop.create_future()
        if self._pending == 0:
            future.set_result(None)
        else:
            self._complete = future
        return future

    def result(self, count: i64, unread: Callable[[Sequence[FailedRun]], object] | None = None) -> BulkResult:
        """The outcome of all ``count`` records of the call; ``unread`` logs failures that the caller never reads."""
        return BulkResult(count, self._delivered, dict(self._offsets), self.failed_runs(), unread)

    def failed_runs(self) -> tuple[FailedRun, ...]:
        """The failures so far."""
        return tuple(self._failed_runs)
