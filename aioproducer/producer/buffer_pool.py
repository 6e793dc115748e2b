"""The bound on memory: ``buffer.memory`` bytes, given out per batch. Compiled when there is a compiler.

Kafka's BufferPool hands out ByteBuffers; here it hands out the right to that many bytes, and keeps the writers of
finished batches for the next ones (its free list). Who waits for memory waits in the
:class:`~aioproducer.producer.parking.ParkingLot`, first come first served; a newcomer never gets what somebody waits
for, because while somebody does, every newcomer is sent to the parking lot.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from aioproducer.errors import IllegalStateException
from aioproducer.producer.record_sizes import RecordSizes
from aioproducer.records.record_writer import RecordWriter

_MAX_SPARES: Final = 64


@final
class BatchBuffer:
    """What a batch writes into: its records, and per record what the metadata will need."""

    def __init__(self) -> None:
        self.records = RecordWriter()
        self.sizes = RecordSizes()


@final
class BufferPool:
    """Counts bytes; ``available + what batches hold == total`` at all times."""

    def __init__(self, total: i64, poolable_size: i64) -> None:
        self.total = total
        self.poolable_size = poolable_size
        self.available: i64 = total
        self._spares: list[BatchBuffer] = []

    def allocate(self, size: i64) -> bool:
        """Takes ``size`` bytes, or nothing and answers False."""
        if size > self.available:
            return False
        self.available -= size
        return True

    def deallocate(self, size: i64) -> None:
        """Gives back what :meth:`allocate` took."""
        if size < 0 or self.available + size > self.total:
            raise IllegalStateException(
                f"{size} bytes given back to a pool of {self.total} that has {self.available} available"
            )
        self.available += size

    def buffer(self) -> BatchBuffer:
        """An empty buffer, recycled if there is one."""
        return self._spares.pop() if self._spares else BatchBuffer()

    def recycle(self, buffer: BatchBuffer) -> None:
        """Takes a frozen batch's buffer back. Only ordinary sizes are kept: a writer never shrinks."""
        if len(self._spares) < _MAX_SPARES and buffer.records.size() <= self.poolable_size:
            buffer.records.clear()
            buffer.sizes.clear()
            self._spares.append(buffer)
