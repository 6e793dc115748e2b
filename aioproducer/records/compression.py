"""Compresses and decompresses record batches in Kafka's formats.

The libraries for snappy, lz4 and zstd are optional and are loaded when first used.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from importlib import import_module
from threading import local
from typing import Any, Final, NamedTuple

from aioproducer.errors import ConfigException, CorruptRecordException


class CompressionType(IntEnum):
    """Kafka's codecs, by their number in a batch's attributes (``org.apache.kafka.common.record.CompressionType``)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, name: str) -> CompressionType:
        """The codec that Kafka calls ``name``: none, gzip, snappy, lz4 or zstd. Raises ConfigException."""
        for codec in cls:
            if str(codec) == name:
                return codec
        raise ConfigException(
            f"compression.type is {name!r}; it can be {', '.join(map(str, cls))}", name="compression.type", value=name
        )

    @property
    def levels(self) -> range:
        """The levels that Kafka's ``compression.<codec>.level`` allows; empty where there are none."""
        return _LEVELS.get(self, range(0))

    @property
    def default_level(self) -> int | None:
        """The default level; None for codecs without levels. gzip's, -1, is not among its ``levels`` but is allowed."""
        return _DEFAULT_LEVELS.get(self)

    def __str__(self) -> str:
        return self.name.lower()


_LEVELS: Final = {
    CompressionType.GZIP: range(1, 10),
    CompressionType.LZ4: range(1, 18),
    CompressionType.ZSTD: range(-131072, 23),
}
_DEFAULT_LEVELS: Final = {CompressionType.GZIP: -1, CompressionType.LZ4: 9, CompressionType.ZSTD: 3}

_LIBRARIES: Final = {
    CompressionType.SNAPPY: "cramjam",
    CompressionType.LZ4: "lz4.frame",
    CompressionType.ZSTD: "zstandard",
}


def _library(codec: CompressionType) -> Any:
    try:
        return import_module(_LIBRARIES[codec])
    except ImportError as missing:
        raise ConfigException(
            f"{codec} needs the library {_LIBRARIES[codec].partition('.')[0]}: pip install 'aioproducer[{codec}]'",
            name="compression.type",
            value=str(codec),
        ) from missing


def is_installed(codec: CompressionType) -> bool:
    """Whether the codec's library is installed."""
    try:
        check_codec(codec)
    except ConfigException:
        return False
    return True


def check_codec(codec: CompressionType, level: int | None = None) -> None:
    """Raises ConfigException if this codec's library is not installed, or if the level is out of range."""
    if codec in _LIBRARIES:
        _library(codec)
    if level is not None and level not in codec.levels and level != codec.default_level:
        allowed = codec.levels
        raise ConfigException(
            f"compression.{codec}.level is {level}; "
            + (f"it can be {allowed.start} to {allowed.stop - 1}" if allowed else f"{codec} has no levels"),
            name=f"compression.{codec}.level",
            value=level,
        )


def compress(codec: CompressionType, data: bytes, level: int | None = None) -> bytes:
    """``data`` compressed. Levels are Kafka's (``codec.levels``), None the default. Raises ConfigException.

    Releases the GIL while it works on more than a few KB, so large data may go to a worker thread.
    """
    if level is not None:
        check_codec(codec, level)
    match codec:
        case CompressionType.NONE:
            return data
        case CompressionType.GZIP:
            return zlib.compress(data, -1 if level is None else level, 31)
        case CompressionType.SNAPPY:
            return _compress_snappy(data)
        case CompressionType.LZ4:
            return _compress_lz4(data, level)
        case CompressionType.ZSTD:
            return _compress_zstd(data, level)


def decompress(codec: CompressionType, data: bytes, max_size: int) -> bytes:
    """Decompresses ``data``.

    Raises CorruptRecordException if that would be more than ``max_size`` bytes, or if ``data`` is broken or ends early;
    ConfigException if the codec's library is not installed.
    """
    match codec:
        case CompressionType.NONE:
            return data
        case CompressionType.GZIP:
            return _decompress_members(codec, data, max_size, _gzip_member, zlib.error)
        case CompressionType.SNAPPY:
            return _decompress_snappy(data, max_size)
        case CompressionType.LZ4:
            return _decompress_members(codec, data, max_size, _lz4_frame, RuntimeError)
        case CompressionType.ZSTD:
            return _decompress_zstd(data, max_size)


_A_MILLISECOND: Final = {
    CompressionType.GZIP: ((3, 96), (6, 24), (9, 8)),
    CompressionType.SNAPPY: ((0, 384),),
    CompressionType.LZ4: ((2, 512), (9, 64), (17, 16)),
    CompressionType.ZSTD: ((1, 384), (3, 192), (6, 64), (9, 32), (12, 12), (22, 2)),
}
"""KiB of JSON that a core of 2020 compresses in about a millisecond, with the highest level that does so."""


def millisecond_of_work(codec: CompressionType, level: int | None) -> int:
    """Bytes whose compression takes about a millisecond, give or take a factor of two; codecs have levels as Kafka has.

    A table and not a measurement, so that every run makes the same choice between loop and thread.
    """
    if codec is CompressionType.LZ4 and level in (None, codec.default_level):
        level = 0  # the fast compressor
    elif level is None or level == codec.default_level:
        level = {CompressionType.GZIP: 6, CompressionType.ZSTD: 3}.get(codec, 0)
    return next(kib * 1024 for highest, kib in _A_MILLISECOND[codec] if level <= highest)


class DecompressedTooLargeException(CorruptRecordException):
    """The decompressed data exceeds the allowed size."""


def _too_large(codec: CompressionType, max_size: int) -> CorruptRecordException:
    return DecompressedTooLargeException(f"{codec} data takes more than the {max_size} bytes it may take decompressed")


def _ends_early(codec: CompressionType) -> CorruptRecordException:
    return CorruptRecordException(f"{codec} data ends early")


def _broken(codec: CompressionType, cause: object) -> CorruptRecordException:
    return CorruptRecordException(f"broken {codec} data: {cause}")


MAX_MEMBERS: Final = 64
"""Finding each member copies all bytes behind it: a megabyte of empty ones would take a minute."""

_MAX_EXPANSION: Final = 1040
"""One byte expands to at most 1032 with deflate, 255 with lz4. lz4.frame reserves its whole limit at once."""


_PIECE: Final = 1024 * 1024
"""The size of a piece that a library returns: it joins its pieces holding the GIL, which ``join`` releases."""


def _joined(pieces: list[bytes]) -> bytes:
    """Joins the pieces. They are freed one after another: freeing 128 MiB at once would hold the GIL for 10 ms."""
    joined = b"".join(pieces)
    while pieces:
        pieces.pop()
    return joined


class Member(NamedTuple):
    """A gzip member or lz4 frame, decompressed so far."""

    content: bytes
    is_whole: bool
    rest: bytes
    """What follows its end."""


def _gzip_member(data: bytes, max_size: int) -> Member:
    return _member(zlib.decompressobj(31), data, max_size)


def _lz4_frame(data: bytes, max_size: int) -> Member:
    return _member(_library(CompressionType.LZ4).LZ4FrameDecompressor(), data, max_size)


def _member(machine: Any, data: bytes, max_size: int) -> Member:
    """Decompresses ``data`` with zlib or lz4, a piece at a time."""
    pieces: list[bytes] = []
    while True:
        asked = min(max_size, _PIECE)
        piece = machine.decompress(data, asked)
        pieces.append(piece)
        max_size -= len(piece)
        if machine.eof or len(piece) < asked or max_size == 0:
            return Member(_joined(pieces), machine.eof, machine.unused_data or b"")
        data = getattr(machine, "unconsumed_tail", b"")  # lz4's keeps what is left


def _decompress_members(
    codec: CompressionType,
    data: bytes,
    max_size: int,
    decompressed: Callable[[bytes, int], Member],
    error: type[Exception],
) -> bytes:
    """One gzip member or lz4 frame, or several one after another (which Java reads too), up to ``MAX_MEMBERS``."""
    pieces: list[bytes] = []
    left = max_size
    while True:
        if len(pieces) == MAX_MEMBERS:
            raise _broken(codec, f"more than {MAX_MEMBERS} frames, one after another")
        try:
            member = decompressed(data, min(left, _MAX_EXPANSION * len(data)) + 1)
        except error as cause:
            raise _broken(codec, cause) from None
        if len(member.content) > left:
            raise _too_large(codec, max_size)
        if not member.is_whole:
            raise _ends_early(codec)
        pieces.append(member.content)
        left -= len(member.content)
        data = member.rest
        if not data:
            return pieces[0] if len(pieces) == 1 else _joined(pieces)


# Snappy has no frame of its own; Kafka uses that of snappy-java's SnappyOutputStream: a magic number, two versions, and
# blocks of 32 KB that are each compressed alone, with their compressed length in front.
_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\0\0\0\1\0\0\0\1"
_XERIAL_BLOCK: Final = 32 * 1024


def _compress_snappy(data: bytes) -> bytes:
    compress_raw = _library(CompressionType.SNAPPY).snappy.compress_raw
    pieces = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(compress_raw(data[start : start + _XERIAL_BLOCK]))
        pieces += (len(block).to_bytes(4, "big"), block)
    return b"".join(pieces)


def _decompress_snappy(data: bytes, max_size: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, max_size, max_size)
    pieces = []
    left = max_size
    pos = len(_XERIAL_HEADER)
    if len(data) < pos:
        raise _ends_early(CompressionType.SNAPPY)
    if not data.startswith(_XERIAL_HEADER):  # some clients would take it for a bare block
        raise _broken(CompressionType.SNAPPY, "its version is not 1")
    while pos < len(data):
        start = pos + 4
        pos = start + int.from_bytes(data[pos:start], "big")
        if pos > len(data):
            raise _ends_early(CompressionType.SNAPPY)
        piece = _decompress_snappy_block(data[start:pos], left, max_size)
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _decompress_snappy_block(block: bytes, left: int, max_size: int) -> bytes:
    cramjam = _library(CompressionType.SNAPPY)
    try:
        if cramjam.snappy.decompress_raw_len(block) > left:
            raise _too_large(CompressionType.SNAPPY, max_size)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as cause:
        raise _broken(CompressionType.SNAPPY, cause) from None


def _compress_lz4(data: bytes, level: int | None) -> bytes:
    frame = _library(CompressionType.LZ4)
    # As in Kafka, the default level, 9, selects the fast compressor, and every other level the thorough one, whose
    # levels begin with 3 here. Kafka does not read linked blocks.
    fast = level is None or level == CompressionType.LZ4.default_level
    compressed: bytes = frame.compress(
        data,
        compression_level=0 if fast else max(3, level or 0),
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


class _ZstdCompressors(local):
    """One compressor for each level and thread: making one takes four times as long as compressing 16 KB with it."""

    def __init__(self) -> None:
        self.by_level: dict[int, Any] = {}


_zstd_compressors: Final = _ZstdCompressors()


def _compress_zstd(data: bytes, level: int | None) -> bytes:
    if level is None:
        level = _DEFAULT_LEVELS[CompressionType.ZSTD]
    compressor = _zstd_compressors.by_level.get(level)
    if compressor is None:
        compressor = _library(CompressionType.ZSTD).ZstdCompressor(level=level)
        _zstd_compressors.by_level[level] = compressor
    compressed: bytes = compressor.compress(data)
    return compressed


_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK: Final = 128 * 1024
"""The most bytes in a decompressed block."""

_ZSTD_LEAST: Final = 256
"""The least size that a block counts for, so that a piece has 4096 blocks at most."""

_RLE, _COMPRESSED = 1, 2
"""Types of blocks. An RLE block has one byte, however long its output."""


def zstd_pieces(data: bytes) -> Iterator[bytes]:
    """Cuts a zstd frame between blocks, so that each piece of a valid frame decompresses to at most ``_PIECE`` bytes.

    Raises ``ZstdError`` if the data does not begin with a frame header.
    """
    at: int = _library(CompressionType.ZSTD).frame_header_size(data)
    start = given = 0
    is_last = False
    while at + 3 <= len(data) and not is_last:
        block = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        gives = max(_ZSTD_LEAST, _ZSTD_BLOCK if kind == _COMPRESSED else size)
        if given + gives > _PIECE:
            yield data[start:at]
            start, given = at, 0
        given += gives
        at += 3 + (1 if kind == _RLE else size)
    yield data[start:]


def _decompress_zstd(data: bytes, max_size: int) -> bytes:
    zstandard = _library(CompressionType.ZSTD)
    if not data.startswith(_ZSTD_MAGIC):
        raise _broken(CompressionType.ZSTD, "it does not begin as a frame does")
    frame = zstandard.ZstdDecompressor().decompressobj()
    pieces = []
    left = max_size
    try:
        # zstandard does not bound the output of a call.
        for packed in zstd_pieces(data):
            piece = frame.decompress(packed)
            left -= len(piece)
            if left < 0:
                raise _too_large(CompressionType.ZSTD, max_size)
            pieces.append(piece)
    except zstandard.ZstdError as cause:
        raise _broken(CompressionType.ZSTD, cause) from None
    if not frame.eof:
        raise _ends_early(CompressionType.ZSTD)
    if frame.unused_data:
        raise _broken(CompressionType.ZSTD, "something follows its end")
    return _joined(pieces)
