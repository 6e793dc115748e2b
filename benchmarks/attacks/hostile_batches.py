"""Record batches that cost more to read than to send."""

from __future__ import annotations

import time
import zlib

from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter

LARGEST = 1_048_588
"""``max.message.bytes`` of a topic."""

_GZIP = 31
"""The window bits with which zlib writes gzip."""


def batch(body: bytes, count: int, codec: CompressionType = CompressionType.NONE) -> bytes:
    """A batch whose header is right for any body."""
    now = int(time.time() * 1000)
    return encode_batch_header(body, count=count, base_timestamp=now, max_timestamp=now, codec=codec) + body


def records(count: int, value: bytes = b"") -> bytes:
    """The body of a batch."""
    writer = RecordWriter()
    for index in range(count):
        writer.append(index, 0, None, value, None)
    return writer.freeze()


def bomb(codec: CompressionType, mib: int = 127) -> bytes:
    """A batch of zeros that take this much when they are decompressed."""
    return batch(compress(codec, bytes(mib << 20)), 1, codec)


def gzip_members() -> bytes:
    """A batch of as many empty gzip members as fit in."""
    writer = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    member = writer.compress(b"") + writer.flush()
    return batch(member * ((LARGEST - 200) // len(member)), 1, CompressionType.GZIP)


def lz4_frames() -> bytes:
    """A batch of as many empty lz4 frames as fit in."""
    one = compress(CompressionType.LZ4, b"")
    return batch(one * ((LARGEST - 200) // len(one)), 1, CompressionType.LZ4)


def garbage() -> bytes:
    """A batch of the right size and checksum whose only record is none."""
    return batch(b"\x0c" + b"\xff" * 6, 1)


def large_garbage() -> bytes:
    """The same, as large as it may be."""
    return batch(b"\x0c" + b"\xff" * (LARGEST - 200), 1)
