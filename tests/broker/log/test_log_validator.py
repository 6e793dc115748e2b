from __future__ import annotations

import contextlib
import gc
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log import log_validator
from aioproducer.broker.log.log_validator import batch_of_request, validate
from aioproducer.errors import (
    ApiException,
    ConfigException,
    CorruptRecordException,
    InvalidRecordException,
    InvalidTimestampException,
    RecordBatchTooLargeException,
    RecordTooLargeException,
    UnsupportedCompressionTypeException,
)
from aioproducer.records.compression import CompressionType, compress
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter
from tests.broker.raw_clients.batches import NOW_MS, make_batch, make_body

CODECS = list(CompressionType)
HOUR_MS = 3_600_000


def topic_config(**configs: object) -> TopicConfig:
    given = {name.replace("_", "."): value for name, value in configs.items()}
    return TopicConfig.of(given, BrokerConfig.of({}))


def check(data: bytes, now_ms: int = NOW_MS, **configs: object) -> None:
    validate(RecordBatch(data), topic_config(**configs), now_ms)


def changed(batch: bytes, offset: int, format: str, value: int) -> bytes:
    """The batch with another value at ``offset``, and the CRC that goes with it."""
    data = bytearray(batch)
    struct.pack_into(format, data, offset, value)
    checksum = crc32c(bytes(data[21:]))
    struct.pack_into(">I", data, 17, checksum)
    return bytes(data)


def stamped(*deltas: int, base: int = NOW_MS, codec: CompressionType = CompressionType.NONE) -> bytes:
    """A record for each delta under a header that knows nothing of them."""
    writer = RecordWriter()
    for index, delta in enumerate(deltas):
        writer.append(index, delta, None, b"x", None)
    body = compress(codec, writer.freeze())
    return encode_batch_header(body, count=len(deltas), base_timestamp=base, max_timestamp=base, codec=codec) + body


class TestBatchOfRequest:
    def test_the_one_batch(self) -> None:
        assert batch_of_request(make_batch(b"a", b"b"), 9).count == 2

    @pytest.mark.parametrize(
        "records", [None, b"", b"short", make_batch(b"a")[:-1]], ids=["null", "empty", "short", "cut"]
    )
    def test_there_must_be_one(self, records: bytes | None) -> None:
        with pytest.raises(InvalidRecordException):
            batch_of_request(records, 9)

    def test_part_of_another_one_is_passed_over(self) -> None:
        batch = make_batch(b"a")
        assert batch_of_request(batch + batch[:-1], 9).size_in_bytes == len(batch)

    def test_there_must_not_be_two(self) -> None:
        with pytest.raises(InvalidRecordException, match="one record batch"):
            batch_of_request(make_batch(b"a") * 2, 9)

    @pytest.mark.parametrize(
        ("magic", "error"), [(0, InvalidRecordException), (1, InvalidRecordException), (3, CorruptRecordException)]
    )
    def test_of_another_format(self, magic: int, error: type[ApiException]) -> None:
        data = bytearray(make_batch(b"a"))
        data[16] = magic
        with pytest.raises(error, match="format"):
            batch_of_request(data, 9)

    def test_a_length_that_is_no_length(self) -> None:
        data = bytearray(make_batch(b"a"))
        struct.pack_into(">i", data, 8, -5)
        with pytest.raises(CorruptRecordException):
            batch_of_request(data, 9)

    def test_zstd_came_with_version_7(self) -> None:
        zstd = make_batch(b"a", codec=CompressionType.ZSTD)
        assert batch_of_request(zstd, 7).codec is CompressionType.ZSTD
        with pytest.raises(UnsupportedCompressionTypeException):
            batch_of_request(zstd, 6)


class TestValidate:
    @pytest.mark.parametrize("codec", CODECS)
    def test_a_batch_of_each_codec_is_valid(self, codec: CompressionType) -> None:
        check(make_batch(b"a", b"", b"c" * 100, b"d" * 10_000, b"e" * 3_000_000, codec=codec), max_message_bytes=10**8)

    @pytest.mark.parametrize(
        ("batch", "error"),
        [
            (make_batch(b"a", base_offset=1), InvalidRecordException),
            (make_batch(b"a", b"b", count=1), InvalidRecordException),
            (make_batch(b"a", count=2), InvalidRecordException),
            (make_batch(count=0), InvalidRecordException),
            (make_batch(b"a", control=True), InvalidRecordException),
            (make_batch(b"a", producer_id=1, producer_epoch=0), InvalidRecordException),
            (make_batch(b"a", transactional=True), InvalidRecordException),
            (make_batch(b"a", base_timestamp=NOW_MS + HOUR_MS + 1), InvalidTimestampException),
            (changed(make_batch(b"a", b"b"), 23, ">i", 5), InvalidRecordException),
            (changed(make_batch(b"a"), 23, ">i", -1), InvalidRecordException),
            (changed(make_batch(b"a"), 57, ">i", -1), InvalidRecordException),
            (changed(make_batch(b"a"), 21, ">h", 7), CorruptRecordException),
        ],
        ids=[
            "base offset",
            "fewer than there are",
            "more than there are",
            "none",
            "control",
            "no sequence",
            "transaction",
            "future",
            "offsets and count",
            "negative offsets",
            "negative count",
            "codec",
        ],
    )
    def test_invalid_batches(self, batch: bytes, error: type[ApiException]) -> None:
        with pytest.raises(error):
            check(batch)

    @pytest.mark.parametrize("position", [21, 30, 60, 61, -1])
    def test_a_flipped_bit_is_found(self, position: int) -> None:
        data = bytearray(make_batch(b"a", b"b"))
        data[position] ^= 1
        with pytest.raises(CorruptRecordException, match="CRC"):
            check(bytes(data))

    def test_sizes(self) -> None:
        batch = make_batch(b"a" * 1000)
        check(batch, max_message_bytes=len(batch))
        with pytest.raises(RecordTooLargeException, match=r"max\.message\.bytes"):
            check(batch, max_message_bytes=len(batch) - 1)

    def test_larger_than_a_segment(self) -> None:
        batch = make_batch(b"a" * 1024 * 1024)
        with pytest.raises(RecordBatchTooLargeException, match=r"segment\.bytes"):
            check(batch, max_message_bytes=10**7, segment_bytes=1024 * 1024)

    def test_log_append_time_is_the_brokers_to_set(self) -> None:
        with pytest.raises(InvalidTimestampException):
            check(make_batch(b"a", log_append_time=True), message_timestamp_type="LogAppendTime")
        # With the broker's time the producer's does not matter.
        check(make_batch(b"a", base_timestamp=NOW_MS + 2 * HOUR_MS), message_timestamp_type="LogAppendTime")

    def test_a_timestamp_too_far_in_the_future_is_refused(self) -> None:
        batch = make_batch(b"a", b"b", base_timestamp=NOW_MS + 10, max_timestamp=NOW_MS)
        check(batch, message_timestamp_after_max_ms=11)
        with pytest.raises(InvalidTimestampException):
            check(batch, message_timestamp_after_max_ms=10)

    def test_a_timestamp_too_far_in_the_past_is_refused(self) -> None:
        batch = make_batch(b"a", b"b", b"c", base_timestamp=NOW_MS - 10, max_timestamp=NOW_MS)
        check(batch, message_timestamp_before_max_ms=10)
        with pytest.raises(InvalidTimestampException, match="in the past"):
            check(batch, message_timestamp_before_max_ms=9)

    @pytest.mark.parametrize("codec", CODECS)
    @pytest.mark.parametrize("delta", [-2 * HOUR_MS, 2 * HOUR_MS])
    def test_of_one_record_under_an_honest_header(self, codec: CompressionType, delta: int) -> None:
        limits = {"message_timestamp_before_max_ms": HOUR_MS, "message_timestamp_after_max_ms": HOUR_MS}
        check(stamped(0, 5, 10, codec=codec), **limits)
        with pytest.raises(InvalidTimestampException):
            check(stamped(0, delta, 10, codec=codec), **limits)

    @pytest.mark.parametrize("codec", CODECS)
    @pytest.mark.parametrize("base", [NOW_MS, 0, 2**61, -1, -(2**61)])
    def test_the_records_are_named(self, codec: CompressionType, base: int) -> None:
        limits = {"message_timestamp_before_max_ms": HOUR_MS, "message_timestamp_after_max_ms": HOUR_MS}
        stamps = [NOW_MS, NOW_MS - HOUR_MS - 1, NOW_MS - HOUR_MS, NOW_MS + HOUR_MS, NOW_MS + HOUR_MS + 1, -1]
        with pytest.raises(InvalidTimestampException) as refused:
            check(stamped(*(stamp - base for stamp in stamps), base=base, codec=codec), **limits)
        text = f"the record's timestamp is out of range; it must be {NOW_MS - HOUR_MS} to {NOW_MS + HOUR_MS}"
        assert refused.value.refused_records == {1: text, 4: text}

    def test_a_record_without_a_timestamp_is_neither_old_nor_new(self) -> None:
        check(stamped(0, -1 - NOW_MS), message_timestamp_before_max_ms=0)
        check(stamped(0, base=-1), message_timestamp_before_max_ms=0)
        with pytest.raises(InvalidTimestampException):
            check(stamped(0, -2 - NOW_MS), message_timestamp_before_max_ms=0)

    @pytest.mark.parametrize(("base", "delta"), [(-(2**63), -1), (2**63 - 1, 1)])
    def test_beyond_64_bits(self, base: int, delta: int) -> None:
        with pytest.raises(InvalidTimestampException):
            check(stamped(delta, base=base), message_timestamp_after_max_ms=2**63 - 1)

    def test_negative_ones_count_as_none_in_the_header(self) -> None:
        assert validate(RecordBatch(stamped(-5, -3, base=-10)), topic_config(), NOW_MS).max_timestamp == -1

    def test_the_largest_timestamp_is_that_of_the_records(self) -> None:
        config = topic_config()
        assert (
            validate(RecordBatch(make_batch(b"a", b"b", b"c", max_timestamp=7)), config, NOW_MS).max_timestamp
            == NOW_MS + 2
        )
        far = make_batch(b"a", max_timestamp=NOW_MS + 2 * HOUR_MS)
        assert validate(RecordBatch(far), config, NOW_MS).max_timestamp == NOW_MS


class TestRecords:
    @pytest.mark.parametrize("codec", CODECS)
    @pytest.mark.parametrize(
        "body",
        [
            make_body(b"a", b"b")[:-1],
            make_body(b"a", b"b") + b"\0",
            b"\x01" + make_body(b"a", b"b"),
            b"\xff\xff\xff\xff\xff\xff" + make_body(b"a"),
            b"\x80\x80\x80\x80\x80\x01" + make_body(b"a"),
            bytes(20),
            b"\x80",
            make_body(b"a") + b"\x0c" + b"\xff" * 6,
            make_body(b"a") * 2,
        ],
        ids=["cut", "more", "negative size", "endless size", "long size", "empty", "half a size", "garbage", "offsets"],
    )
    def test_must_fill_the_batch(self, codec: CompressionType, body: bytes) -> None:
        data = compress(codec, body)
        header = encode_batch_header(data, count=2, base_timestamp=NOW_MS, max_timestamp=NOW_MS, codec=codec)
        with pytest.raises(InvalidRecordException):
            check(header + data)

    def test_that_are_refused_are_freed_at_once(self) -> None:
        """Without the garbage collector, which rests while a broker is busy."""
        body = make_body(b"a") + b"\x0c" + b"\xff" * 6
        header = encode_batch_header(body, count=2, base_timestamp=NOW_MS, max_timestamp=NOW_MS)
        batch = RecordBatch(header + body)
        before = sys.getrefcount(batch)
        gc.disable()
        try:
            with contextlib.suppress(InvalidRecordException):
                validate(batch, topic_config(), NOW_MS)
            assert sys.getrefcount(batch) == before
        finally:
            gc.enable()

    @pytest.mark.parametrize("codec", CODECS[1:])
    def test_that_cannot_be_decompressed(self, codec: CompressionType) -> None:
        data = compress(codec, make_body(b"a" * 100))[:-3]
        header = encode_batch_header(data, count=1, base_timestamp=NOW_MS, max_timestamp=NOW_MS, codec=codec)
        with pytest.raises(InvalidRecordException, match="decompressed"):
            check(header + data)

    def test_a_decompression_bomb(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(log_validator, "MAX_DECOMPRESSED_SIZE", 1000)
        with pytest.raises(InvalidRecordException, match="1000"):
            check(make_batch(bytes(10_000), codec=CompressionType.GZIP))

    def test_are_not_looked_at_without_the_codecs_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(codec: CompressionType) -> None:
            raise ConfigException("lz4 is not installed")

        monkeypatch.setattr(log_validator, "check_codec", missing)
        data = b"who knows"
        header = encode_batch_header(
            data, count=1, base_timestamp=NOW_MS, max_timestamp=NOW_MS, codec=CompressionType.LZ4
        )
        check(header + data)

    @given(
        sizes=st.lists(st.one_of(st.integers(0, 200), st.sampled_from([8184, 8185, 8186, 2**20, 2**21])), max_size=6)
    )
    def test_of_any_sizes(self, sizes: list[int]) -> None:
        check(make_batch(b"x", *(bytes(size) for size in sizes)), max_message_bytes=10**9)

    @given(body=st.binary(max_size=60), count=st.integers(1, 5))
    def test_garbage_is_refused_or_is_records(self, body: bytes, count: int) -> None:
        header = encode_batch_header(body, count=count, base_timestamp=NOW_MS, max_timestamp=NOW_MS)
        try:
            check(header + body)
        except InvalidRecordException:
            return
        assert len(list(RecordBatch(header + body).records())) == count


class TestKeys:
    def test_a_compacted_topic_needs_them(self) -> None:
        writer = RecordWriter()
        writer.append(0, 0, b"k", b"v", None)
        body = writer.freeze()
        keyed = encode_batch_header(body, count=1, base_timestamp=NOW_MS, max_timestamp=NOW_MS) + body
        keyless = make_batch(b"v")
        for policy in ("compact", "compact,delete"):
            check(keyed, cleanup_policy=policy)
            with pytest.raises(InvalidRecordException, match="record 0 has no key"):
                check(keyless, cleanup_policy=policy)
        check(keyless, cleanup_policy="delete")

    @pytest.mark.parametrize("codec", CODECS)
    def test_an_empty_key_is_one_and_any_record_may_lack_one(self, codec: CompressionType) -> None:
        writer = RecordWriter()
        for index, key in enumerate((b"", b"k", None, None)):
            writer.append(index, 0, key, b"x", None)
        body = compress(codec, writer.freeze())
        header = encode_batch_header(body, count=4, base_timestamp=NOW_MS, max_timestamp=NOW_MS, codec=codec)
        with pytest.raises(InvalidRecordException, match="record 2 has no key"):
            check(header + body, cleanup_policy="compact")


class TestCodec:
    @pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
    @pytest.mark.parametrize("source", CODECS)
    def test_batches_get_the_one_that_their_topic_wants(self, source: CompressionType, target: str) -> None:
        batch = RecordBatch(
            make_batch(*(b"v%d" % n * 50 for n in range(9)), codec=source, producer_id=5, base_sequence=3)
        )
        found = validate(batch, topic_config(compression_type=target), NOW_MS)
        if str(source) == target.replace("uncompressed", "none"):
            assert found.recompressed is None
            return
        assert found.recompressed is not None
        changed = RecordBatch(found.recompressed)
        changed.verify()
        assert str(changed.codec) == target.replace("uncompressed", "none")
        assert list(changed.records()) == list(batch.records())
        same = (
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "count",
            "base_timestamp",
            "max_timestamp",
            "is_transactional",
        )
        assert [getattr(changed, name) for name in same] == [getattr(batch, name) for name in same]

    def test_the_level_counts(self) -> None:
        batch = RecordBatch(make_batch(*(b"%d" % (n * 7919) for n in range(500))))
        sizes = []
        for level in (1, 9):
            config = topic_config(compression_type="gzip", compression_gzip_level=level)
            found = validate(batch, config, NOW_MS).recompressed
            assert found is not None
            sizes.append(len(found))
        assert sizes[0] > sizes[1]

    def test_a_batch_too_large_in_its_new_codec_is_refused(self) -> None:
        packed = make_batch(b"x" * 5000, codec=CompressionType.GZIP)
        check(packed, max_message_bytes=1000, compression_type="producer")
        with pytest.raises(RecordTooLargeException, match=r"max\.message\.bytes=1000"):
            check(packed, max_message_bytes=1000, compression_type="uncompressed")

    def test_nothing_is_compressed_that_is_wrong(self) -> None:
        broken = changed(make_batch(b"a", b"b"), 57, ">i", 3)
        with pytest.raises(InvalidRecordException):
            check(broken, compression_type="gzip")
