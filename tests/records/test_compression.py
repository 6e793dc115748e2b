"""Every codec: round trips, what Kafka's classes wrote, bounds, broken data, missing libraries."""

from __future__ import annotations

import gzip
import random
import sys
import threading

import cramjam
import lz4.frame  # type: ignore[import-untyped]
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from aioproducer.errors import ConfigException, CorruptRecordException
from aioproducer.records.compression import (
    CompressionType,
    check_codec,
    compress,
    decompress,
    millisecond_of_work,
    zstd_pieces,
)

COMPRESSED = [codec for codec in CompressionType if codec is not CompressionType.NONE]
MIB = 1024 * 1024

# 87 bytes that Kafka 4.3.1 compressed with each of its codecs.
PLAIN = bytes.fromhex(
    "2c000000066b65790a76616c7565040268027804c3a9016e00e70702016076616c75652076616c75652076616c75652076616c7565207661"
    "6c75652076616c75652076616c75652076616c756520000e00c80104000100"
)
BY_KAFKA = {
    CompressionType.GZIP: (
        "1f8b08000000000000ffd361606060cb4eade42a4bcc294d6561ca60aa6039bc92318fe1393b1363025850817892818fe104230b03230300"
        "e01a6eb957000000"
    ),
    CompressionType.SNAPPY: (
        "82534e415050590000000001000000010000003157742c000000066b65790a76616c7565040268027804c3a9016e00e70702016005150020"
        "a6060020000e00c80104000100"
    ),
    CompressionType.LZ4: (
        "04224d1860408231000000f10f2c000000066b65790a76616c7565040268027804c3a9016e00e70702016015001f2006001790000e00c801"
        "0400010000000000"
    ),
    CompressionType.ZSTD: (
        "28b52ffd005894010084022c000000066b65790a76616c7565040268027804c3a9016e00e70702016020000e00c801040001000200534088"
        "ed7402010000"
    ),
}


@pytest.mark.parametrize("codec", CompressionType)
@settings(max_examples=60)
@given(data=st.one_of(st.binary(max_size=300), st.tuples(st.binary(max_size=20), st.integers(0, 9000))))
def test_round_trip(codec: CompressionType, data: bytes | tuple[bytes, int]) -> None:
    plain = data if isinstance(data, bytes) else data[0] * data[1]
    assert decompress(codec, compress(codec, plain), len(plain)) == plain


@pytest.mark.parametrize("codec", COMPRESSED)
def test_round_trip_of_many_blocks(codec: CompressionType) -> None:
    plain = random.Random(1).randbytes(200_000) + bytes(300_000) + b"text " * 50_000
    compressed = compress(codec, plain)
    assert len(compressed) < len(plain)
    assert decompress(codec, compressed, MIB) == plain


@pytest.mark.parametrize("codec", COMPRESSED)
def test_reads_what_kafka_wrote(codec: CompressionType) -> None:
    assert decompress(codec, bytes.fromhex(BY_KAFKA[codec]), len(PLAIN)) == PLAIN


@pytest.mark.parametrize("codec", [CompressionType.SNAPPY, CompressionType.LZ4])
def test_frames_are_kafkas_to_the_byte(codec: CompressionType) -> None:
    assert compress(codec, PLAIN).hex() == BY_KAFKA[codec]


def test_snappy_blocks_are_32_kib() -> None:
    compressed = compress(CompressionType.SNAPPY, bytes(2 * 32768 + 1))
    sizes, pos = [], 16
    while pos < len(compressed):
        length = int.from_bytes(compressed[pos : pos + 4], "big")
        block = compressed[pos + 4 : pos + 4 + length]
        sizes.append(len(bytes(cramjam.snappy.decompress_raw(block))))
        pos += 4 + length
    assert sizes == [32768, 32768, 1]


def test_raw_snappy_is_read_too() -> None:
    raw = bytes(cramjam.snappy.compress_raw(PLAIN))
    assert decompress(CompressionType.SNAPPY, raw, len(PLAIN)) == PLAIN
    with pytest.raises(CorruptRecordException, match="more than"):
        decompress(CompressionType.SNAPPY, raw, len(PLAIN) - 1)


def test_snappy_streams_of_other_versions_are_refused() -> None:
    stream = bytearray(compress(CompressionType.SNAPPY, PLAIN))
    stream[8] = 1
    with pytest.raises(CorruptRecordException, match="its version is not 1"):
        decompress(CompressionType.SNAPPY, bytes(stream), len(PLAIN))


def test_lz4_blocks_are_64_kib_and_independent() -> None:
    frame = lz4.frame.get_frame_info(compress(CompressionType.LZ4, bytes(200_000)))
    assert frame["block_size"] == 64 * 1024
    assert not frame["block_linked"]
    assert not frame["content_checksum"]


def test_lz4_frames_of_others_are_read() -> None:
    plain = b"text " * 50_000
    for linked in (False, True):
        for size in (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB):
            frame = lz4.frame.compress(
                plain, block_linked=linked, block_size=size, content_checksum=True, block_checksum=True, store_size=True
            )
            assert decompress(CompressionType.LZ4, frame, len(plain)) == plain


def test_members_one_after_another() -> None:
    two = gzip.compress(b"one, ") + gzip.compress(b"two")
    assert decompress(CompressionType.GZIP, two, 8) == b"one, two"
    with pytest.raises(CorruptRecordException, match="more than the 7 bytes"):
        decompress(CompressionType.GZIP, two, 7)
    assert decompress(CompressionType.LZ4, lz4.frame.compress(b"one, ") + lz4.frame.compress(b"two"), 8) == b"one, two"


@pytest.mark.parametrize("codec", COMPRESSED)
def test_bombs_are_bounded(codec: CompressionType) -> None:
    plain = bytes(20 * MIB)
    bomb = compress(codec, plain)
    assert len(bomb) < MIB
    for limit in (0, 1, 1000, MIB, len(plain) - 1):
        with pytest.raises(CorruptRecordException, match=f"more than the {limit} bytes"):
            decompress(codec, bomb, limit)
    assert decompress(codec, bomb, len(plain)) == plain


def zstd_frame(plain: bytes, level: int, *, sized: bool, checksum: bool) -> bytes:
    compressor = zstandard.ZstdCompressor(level=level, write_checksum=checksum, write_content_size=sized)
    if sized:
        return compressor.compress(plain)
    stream = compressor.compressobj()
    return stream.compress(plain) + stream.flush()


@settings(max_examples=50, deadline=None)
@given(
    parts=st.lists(st.tuples(st.sampled_from((1, 1000, 300_000)), st.integers(1, 1_500_000)), max_size=3),
    level=st.integers(-5, 9),
    sized=st.booleans(),
    checksum=st.booleans(),
)
def test_zstd_is_decompressed_in_pieces(parts: list[tuple[int, int]], level: int, sized: bool, checksum: bool) -> None:
    source = random.Random(len(parts))
    plain = b"".join((source.randbytes(period) * (size // period + 1))[:size] for period, size in parts)
    frame = zstd_frame(plain, level, sized=sized, checksum=checksum)
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    pieces = [decompressor.decompress(packed) for packed in zstd_pieces(frame)]
    assert b"".join(pieces) == plain
    assert max(map(len, pieces)) <= MIB
    assert decompress(CompressionType.ZSTD, frame, len(plain)) == plain


def test_zstd_blocks_that_give_nothing_are_counted() -> None:
    empty_block = b"\0\0\0"
    frame = compress(CompressionType.ZSTD, b"")
    body = zstandard.frame_header_size(frame)
    assert frame[body:] == b"\1\0\0", "one empty block, and the last"
    many = frame[:body] + empty_block * 300_000 + frame[body:]
    pieces = list(zstd_pieces(many))
    assert b"".join(pieces) == many
    assert max(map(len, pieces)) < 13_000
    assert decompress(CompressionType.ZSTD, many, 0) == b""


class _MeasuredDecompressor(lz4.frame.LZ4FrameDecompressor):  # type: ignore[misc]
    largest = 0

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        content: bytes = super().decompress(data, max_length)
        type(self).largest = max(self.largest, len(content))
        return content


def test_lz4_is_decompressed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = bytes(5 * MIB + 1)
    for bomb in (compress(CompressionType.LZ4, plain), lz4.frame.compress(plain, store_size=True)):
        with monkeypatch.context() as patch:
            patch.setattr(lz4.frame, "LZ4FrameDecompressor", _MeasuredDecompressor)
            assert decompress(CompressionType.LZ4, bomb, len(plain)) == plain
        assert _MeasuredDecompressor.largest == MIB


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4])
def test_frames_one_after_another_are_bounded(codec: CompressionType) -> None:
    frame = compress(codec, b"a")
    assert decompress(codec, frame * 64, MIB) == b"a" * 64
    with pytest.raises(CorruptRecordException, match="more than 64 frames"):
        decompress(codec, frame * 65, MIB)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_every_cut_is_noticed(codec: CompressionType) -> None:
    compressed = compress(codec, PLAIN * 3)
    # a snappy stream has no end mark: cut between blocks it is a shorter one
    ends = {16} if codec is CompressionType.SNAPPY else set()
    for end in set(range(len(compressed))) - ends:
        with pytest.raises(CorruptRecordException):
            decompress(codec, compressed[:end], MIB)


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("rubbish", [b"", b"\1", b"rubbish" * 20, b"\xff" * 100, b"\x82SNAPPY\0", b"\x82SNAPPY\0" * 3])
def test_rubbish(codec: CompressionType, rubbish: bytes) -> None:
    with pytest.raises(CorruptRecordException):
        decompress(codec, rubbish, MIB)
    with pytest.raises(CorruptRecordException):
        decompress(codec, compress(codec, PLAIN) + b"rubbish", MIB)


@pytest.mark.parametrize("codec", COMPRESSED)
@settings(max_examples=100)
@given(data=st.data())
def test_broken_data_raises_one_error(codec: CompressionType, data: st.DataObject) -> None:
    broken = bytearray(compress(codec, PLAIN))
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        plain = decompress(codec, bytes(broken), 10_000)
    except CorruptRecordException:
        pass
    else:
        assert len(plain) <= 10_000


def test_zstd_frame_that_lies_about_its_size() -> None:
    honest = zstandard.ZstdCompressor().compress(bytes(1000))
    assert zstandard.frame_content_size(honest) == 1000
    assert honest[4:7] == bytes.fromhex("60e802")  # descriptor: single segment, 2 bytes of size; 1000 - 256
    lying = honest[:4] + b"\xe0" + (2**62).to_bytes(8, "little") + honest[7:]
    with pytest.raises(CorruptRecordException):
        decompress(CompressionType.ZSTD, lying, MIB)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_levels(codec: CompressionType) -> None:
    plain = b"".join(b"line %d of text\n" % (n * n) for n in range(300))
    for level in {*codec.levels[:3], *codec.levels[-3:], 0 if codec is CompressionType.ZSTD else None}:
        assert decompress(codec, compress(codec, plain, level), MIB) == plain
    if codec.levels:
        assert codec.default_level is not None
        assert compress(codec, plain, codec.default_level) == compress(codec, plain)
        assert len(compress(codec, plain, codec.levels[-1])) < len(compress(codec, plain, codec.levels[0]))
        for level in (codec.levels.start - 1, codec.levels.stop):
            if level != codec.default_level:
                with pytest.raises(ConfigException, match=rf"compression\.{codec}\.level is {level}; it can be"):
                    compress(codec, plain, level)
    else:
        with pytest.raises(ConfigException, match="snappy has no levels"):
            compress(codec, plain, 1)


def test_gzip_levels_are_kafkas() -> None:
    assert CompressionType.GZIP.default_level == -1
    with pytest.raises(ConfigException):
        check_codec(CompressionType.GZIP, 0)
    check_codec(CompressionType.GZIP, -1)


def test_names() -> None:
    assert [str(codec) for codec in CompressionType] == ["none", "gzip", "snappy", "lz4", "zstd"]
    for codec in CompressionType:
        assert CompressionType.of(str(codec)) is codec
    for unknown in ("GZIP", "brotli", "", "1"):
        with pytest.raises(ConfigException, match="none, gzip, snappy, lz4, zstd") as caught:
            CompressionType.of(unknown)
        assert caught.value.name == "compression.type"
        assert caught.value.value == unknown


@pytest.mark.parametrize(
    ("codec", "library"),
    [(CompressionType.SNAPPY, "cramjam"), (CompressionType.LZ4, "lz4"), (CompressionType.ZSTD, "zstandard")],
)
def test_a_missing_library_names_the_extra(
    codec: CompressionType, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed = compress(codec, PLAIN)
    check_codec(codec)
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    expected = rf"needs the library {library}: pip install 'aioproducer\[{codec}\]'"
    with pytest.raises(ConfigException, match=expected):
        check_codec(codec)
    with pytest.raises(ConfigException, match=expected):
        decompress(codec, compressed, MIB)
    if codec is CompressionType.ZSTD:  # a compressor that is there already needs no library
        with pytest.raises(ConfigException, match=expected):
            compress(codec, PLAIN, 7)
    else:
        with pytest.raises(ConfigException, match=expected):
            compress(codec, PLAIN)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_threads_do_not_disturb_each_other(codec: CompressionType) -> None:
    plains = [random.Random(n).randbytes(500) * 100 for n in range(4)]
    results: dict[int, bool] = {}

    def work(index: int) -> None:
        results[index] = all(decompress(codec, compress(codec, plains[index]), MIB) == plains[index] for _ in range(20))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_every_level_has_a_measure_of_its_work_and_higher_ones_do_less_in_a_millisecond(codec: CompressionType) -> None:
    usual = millisecond_of_work(codec, codec.default_level)
    assert usual == millisecond_of_work(codec, None)
    levels = [level for level in codec.levels if level > -10 and level != codec.default_level]
    measures = [millisecond_of_work(codec, level) for level in levels]
    assert measures == sorted(measures, reverse=True)
    assert min([usual, *measures]) >= 1024
