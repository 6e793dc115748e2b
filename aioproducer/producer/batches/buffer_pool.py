"""The bound on memory: ``buffer.memory`` bytes, given out to batches as they grow (KIP-782).

Kafka's BufferPool hands out ByteBuffers; this one only counts bytes, and keeps the writers of finished batches for the
next ones (its free list). Records that wait for memory wait in the
:class:`~aioproducer.producer.parking.parking_lot.ParkingLot`, first come, first served; while any record waits there,
newcomers join the line.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from aioproducer.errors import IllegalStateException
from aioproducer.producer.delivery.record_sizes import RecordSizes
from aioproducer.records.record_writer import RecordWriter

SPARE_BYTES: Final = 2 * 1024 * 1024
"""The most bytes of recycled buffers, in the free list or in use again, beside ``buffer.memory``."""


@final
@mypyc_attr(acyclic=True)
class BatchBuffer:
    """A batch's buffers: its records, and the sizes that their metadata will need."""

    def __init__(self) -> None:
        self.records = RecordWriter()
        self.sizes = RecordSizes()
        self.grown: i64 = 0
        """The most bytes it has held; clearing keeps its memory."""
        self.counted: i64 = 0
        """Its part of the pool's spare bytes; above 0 once it has been recycled."""

    def clear(self) -> None:
        held = self.records.size() + self.sizes.size()
        if held > self.grown:
            self.grown = held
        self.records.clear()
        self.sizes.clear()


@final
class BufferPool:
    """Counts bytes; ``available + what batches hold == total`` at all times.

    :meth:`exchange` may make ``available`` negative for a while.
    """

    def __init__(self, total: i64, poolable_size: i64, initial_size: i64 = 0) -> None:
        """``poolable_size``: the most bytes of records that a batch grows to; ``initial_size``: the bytes that it is
        charged at first, and by which its charge grows (``batch.initial.size``)."""
        self.total = total
        self.poolable_size = poolable_size
        self.initial_size = initial_size
        self.available: i64 = total
        self._spares: list[BatchBuffer] = []
        self._spare_bytes: i64 = 0

    def allocate(self, size: i64) -> bool:
        """Takes ``size`` bytes, or takes nothing and returns False."""
        if size > self.available:
            return False
        self.available -= size
        return True

    def deallocate(self, size: i64) -> None:
        """Gives back what :meth:`allocate` took."""
        if size < 0 or self.available + size > self.total:
            raise self._unbalanced(size, 0)
        self.available += size

    def exchange(self, held: i64, needed: i64) -> None:
        """Gives ``held`` bytes back and takes ``needed``, available or not: for data that is in memory already."""
        if held < 0 or needed < 0 or self.available + held - needed > self.total:
            raise self._unbalanced(held, needed)
        self.available += held - needed

    def _unbalanced(self, held: i64, needed: i64) -> IllegalStateException:
        return IllegalStateException(
            f"{held} bytes given back to a pool of {self.total} that has {self.available} available, for {needed}"
        )

    def buffer(self) -> BatchBuffer:
        """An empty buffer, recycled if possible."""
        return self._spares.pop() if self._spares else BatchBuffer()

    def recycle(self, buffer: BatchBuffer) -> None:
        """Takes a frozen batch's buffer back, unless recycled buffers would take more than ``SPARE_BYTES``.

        A recycled buffer counts there while a batch uses it, too: it may be much larger than that batch's charge.
        """
        self._spare_bytes -= buffer.counted
        buffer.counted = 0
        buffer.clear()
        if buffer.grown <= 2 * self.poolable_size and self._spare_bytes + buffer.grown <= SPARE_BYTES:
            buffer.counted = buffer.grown
            self._spares.append(buffer)
            self._spare_bytes += buffer.grown
