"""A digest of rows, which shows whether a task that is run again has the same rows as before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_MASK: Final = 2**64 - 1

_ROUNDS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
"""Shifts and factors that make each bit of 64 depend on each other one (the finalizer of splitmix64)."""


class ContentDigest:
    """The sum of the rows' hashes, because a shuffle may deliver the same rows in another order, in other batches.

    A row's hash has 64 bits. It depends on which value stands in which column, and not on the values' bytes put
    together. It protects against accidents, not against intent.

    Markers keep digests. When they are made in another way, ``marker.VERSION`` must rise.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self.rows = 0
        self._columns = sorted(columns)
        self._sum = 0

    def through(self, batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Passes the batches on, and adds them to the digest."""
        for batch in batches:
            self.update(batch)
            yield batch

    def update(self, batch: RecordBatch) -> None:
        """A row costs about 0.25 µs for each column, and 1 µs for each 1.5 KB."""
        import pyarrow.compute as pc

        if not batch.num_rows:
            return
        first, *others = self._columns
        hashes = _mixed(_hashes(batch.column(first)))
        for name in others:
            hashes = _mixed(pc.add(hashes, _hashes(batch.column(name))))
        self._sum = (self._sum + pc.sum(hashes).as_py()) & _MASK
        self.rows += batch.num_rows

    def text(self) -> str:
        """16 hexadecimal digits."""
        return f"{self._sum:016x}"


def digest_of_all(digests: Iterable[str]) -> str:
    """The digest of all rows together."""
    return f"{sum(int(digest, 16) for digest in digests) & _MASK:016x}"


def _hashes(column: Any) -> Any:
    """64 bits for each value, 0 for null, as an Arrow array."""
    import pyarrow as pa
    import pyarrow.compute as pc

    joined = b"".join([blake2b(text, digest_size=8).digest() for text in _texts(column)])
    hashes = pa.Array.from_buffers(pa.uint64(), len(column), [None, pa.py_buffer(joined)])
    return pc.if_else(column.is_null(), pa.scalar(0, pa.uint64()), hashes) if column.null_count else hashes


def _mixed(hashes: Any) -> Any:
    """Arrow's arithmetic wraps around, as this needs it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for shift, factor in _ROUNDS:
        shifted = pc.shift_right(hashes, pa.scalar(shift, pa.uint64()))
        hashes = pc.multiply(pc.bit_wise_xor(hashes, shifted), pa.scalar(factor, pa.uint64()))
    return hashes


def _texts(column: Any) -> list[bytes]:
    """A text for each value, the same for the same value in whatever session."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_nested(kind):
        return [repr(value).encode() for value in column.to_pylist()]
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())  # the instant: the type has the session's time zone
    if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        column = column.cast(pa.large_string()).cast(pa.large_binary())
    texts: list[bytes] = (column.fill_null(b"") if column.null_count else column).to_pylist()
    return texts
