"""Record batches as clients send them."""

from __future__ import annotations

from typing import Any

from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter

NOW_MS = 1_700_000_000_000


def make_body(*values: bytes | None) -> bytes:
    """A record for each value, a millisecond apart, without a batch's header."""
    writer = RecordWriter()
    for index, value in enumerate(values):
        writer.append(index, index, None, value, None)
    return writer.freeze()


def make_batch(*values: bytes, codec: CompressionType = CompressionType.NONE, **header: Any) -> bytes:
    """A batch with a record for each value; ``header`` overrides the right arguments of ``encode_batch_header``."""
    body = compress(codec, make_body(*values))
    count = len(values)
    right = {"count": count, "base_timestamp": NOW_MS, "max_timestamp": NOW_MS + count - 1, "codec": codec}
    return encode_batch_header(body, **{**right, **header}) + body
