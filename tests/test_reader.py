from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster, Partition, PartitionLog
from aioproducer.broker.faults.faults import Faults, ReceivedRequest, RequestFault
from aioproducer.broker.log.appended_batch import set_base_offset
from aioproducer.errors import (
    ConfigException,
    CorruptRecordException,
    IllegalArgumentException,
    KafkaError,
    OffsetOutOfRangeException,
    TimeoutException,
    UnknownTopicOrPartitionException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.reader import PartitionReader
from aioproducer.records.compression import CompressionType
from aioproducer.records.crc32c import crc32c
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.simulation.listening import listen_on_network
from tests.broker.raw_clients.batches import NOW_MS, make_batch
from tests.support.virtual_time import World, virtual

QUICK: Any = {
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 1,
    "reconnect_backoff_max_ms": 5,
}


@asynccontextmanager
async def running(**more: Any) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=2, configs={"auto.create.topics.enable": "false"}, **more) as cluster:
        cluster.create_topic("t", partitions=2, replication_factor=2)
        yield cluster


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with running() as cluster:
        yield cluster


def append(cluster: EmbeddedCluster, *values: bytes, partition: int = 0, **header: Any) -> None:
    log = cluster.log("t", partition)
    log.append(RecordBatch(make_batch(*values, **header)), leader_epoch=0, now_ms=NOW_MS)
    cluster.topic("t").partitions[partition].notify()


def plant(log: PartitionLog, batch: bytes) -> None:
    """Puts a batch into the log that no producer could have put there."""
    stored = bytearray(batch)
    set_base_offset(stored, log.log_end_offset, 0)
    log._batches.append(stored)
    log._index.append(log.log_end_offset, NOW_MS, len(stored))
    log.log_end_offset += RecordBatch(stored).last_offset_delta + 1


def reader_of(cluster: EmbeddedCluster, partition: int = 0, **more: Any) -> PartitionReader:
    return PartitionReader(cluster.bootstrap_servers, "t", partition, **{**QUICK, **more})


async def values(records: AsyncIterator[Any]) -> list[bytes | None]:
    return [record.value async for record in records]


# What is read


async def test_reads_what_a_producer_sent(cluster: EmbeddedCluster) -> None:
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        await producer.send("t", b"v", key=b"k", partition=1, timestamp_ms=17, headers=[("a", b"1"), ("b", None)])
        await producer.send("t", None, partition=1, timestamp_ms=18)
    async with reader_of(cluster, 1) as reader:
        records = [record async for record in reader.read_to_end()]
    assert [tuple(record) for record in records] == [
        (0, 17, b"k", b"v", (("a", b"1"), ("b", None))),
        (1, 18, None, None, ()),
    ]


async def test_read_to_end_of_an_empty_partition(cluster: EmbeddedCluster) -> None:
    async with reader_of(cluster) as reader:
        assert await values(reader.read_to_end()) == []
        assert reader.position == 0


async def test_read_to_end_stops_at_the_end_as_it_was(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0", b"1")
    async with reader_of(cluster) as reader:
        records = reader.read_to_end()
        first = await anext(records)
        append(cluster, b"2")
        assert [first.value, *await values(records)] == [b"0", b"1"]
        assert await values(reader.read_to_end()) == [b"2"]


async def test_iterating_waits_for_new_records(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0")
    async with reader_of(cluster) as reader:
        records = aiter(reader)
        assert (await anext(records)).value == b"0"
        waiting = asyncio.ensure_future(anext(records))
        await asyncio.sleep(0)
        append(cluster, b"1")
        assert (await waiting).value == b"1"


async def test_an_iteration_goes_on_where_the_last_one_was_left(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0", b"1", b"2")
    async with reader_of(cluster) as reader:
        async for record in reader:
            if record.value == b"1":
                break
        assert reader.position == 2
        assert await values(reader.read_to_end()) == [b"2"]


@pytest.mark.parametrize(
    ("start", "expected"), [("earliest", [b"1", b"2", b"3"]), ("latest", []), (1, [b"1", b"2", b"3"]), (3, [b"3"])]
)
async def test_start(cluster: EmbeddedCluster, start: Any, expected: list[bytes]) -> None:
    append(cluster, b"0", b"1", b"2")
    append(cluster, b"3")
    cluster.log("t").delete_records(1)
    async with reader_of(cluster, start=start) as reader:
        assert await values(reader.read_to_end()) == expected


async def test_records_of_a_batch_below_the_wanted_offset_are_skipped(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0", b"1", b"2")
    async with reader_of(cluster, start=2) as reader:
        assert [(record.offset, record.value) async for record in reader.read_to_end()] == [(2, b"2")]


@pytest.mark.parametrize("codec", CompressionType)
async def test_compressed_batches(cluster: EmbeddedCluster, codec: CompressionType) -> None:
    append(cluster, b"0", b"1", codec=codec)
    async with reader_of(cluster) as reader:
        assert await values(reader.read_to_end()) == [b"0", b"1"]


async def test_control_batches_are_skipped(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0")
    plant(cluster.log("t"), make_batch(b"marker", control=True, transactional=True, producer_id=1, producer_epoch=0))
    append(cluster, b"2")
    plant(cluster.log("t"), make_batch(b"marker", control=True, transactional=True, producer_id=1, producer_epoch=0))
    async with reader_of(cluster) as reader:
        assert [record.offset async for record in reader.read_to_end()] == [0, 2]
        assert reader.position == 4


async def test_a_batch_that_compaction_emptied_is_passed(cluster: EmbeddedCluster) -> None:
    batch = bytearray(make_batch())
    batch[23:27] = (4).to_bytes(4, "big")  # the last offset delta
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    plant(cluster.log("t"), bytes(batch))
    append(cluster, b"5")
    async with reader_of(cluster) as reader:
        assert [record.offset async for record in reader.read_to_end()] == [5]


async def test_many_fetches(cluster: EmbeddedCluster) -> None:
    sent = [b"%d" % number * 50 for number in range(500)]
    for first in range(0, 500, 10):
        append(cluster, *sent[first : first + 10])
    async with reader_of(cluster, max_partition_fetch_bytes=4000) as reader:
        assert await values(reader.read_to_end()) == sent


async def test_a_batch_that_is_larger_than_a_fetch_may_be(cluster: EmbeddedCluster) -> None:
    append(cluster, bytes(5000))
    async with reader_of(cluster, max_partition_fetch_bytes=100) as reader:
        assert await values(reader.read_to_end()) == [bytes(5000)]


async def test_whole_batches(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0", b"1", b"2")
    plant(cluster.log("t"), make_batch(b"marker", control=True, transactional=True, producer_id=1, producer_epoch=0))
    async with reader_of(cluster, start=1) as reader:
        first, marker = await reader.next_batches()
        assert (first.base_offset, first.last_offset, marker.is_control, reader.position) == (0, 2, True, 4)
        assert await reader.next_batches() == []
        append(cluster, b"4")
        (last,) = await reader.next_batches()
        assert (last.base_offset, reader.position) == (4, 5)
    async with reader_of(cluster, start="latest") as reader:
        assert await reader.next_batches() == []
        assert reader.position == 5


async def test_committed_records_alone(cluster: EmbeddedCluster) -> None:
    """Two records each, and a marker; the last transaction is open."""
    servers = cluster.bootstrap_servers
    async with KafkaProducer(bootstrap_servers=servers, transactional_id="x") as producer:
        await producer.init_transactions()
        for end in ("commit", "abort", "commit", "open"):
            await producer.begin_transaction()
            for number in range(2):
                await (await producer.enqueue("t", b"%s %d" % (end.encode(), number), partition=0))
            if end == "open":
                break
            await (producer.commit_transaction() if end == "commit" else producer.abort_transaction())
        committed = [b"commit 0", b"commit 1"] * 2
        async with reader_of(cluster) as reader:
            assert await reader.end_offset() == 11
            everything = [b"commit 0", b"commit 1", b"abort 0", b"abort 1", *committed[2:], b"open 0", b"open 1"]
            assert await values(reader.read_to_end()) == everything
        async with reader_of(cluster, isolation_level="read_committed", max_partition_fetch_bytes=100) as reader:
            assert await reader.end_offset() == 9
            assert await values(reader.read_to_end()) == committed
            assert reader.position == 9
            assert await reader.next_batches() == [], "what is open is not read"
            await producer.abort_transaction()
            batches = await reader.next_batches()
            while reader.position != 12:
                batches += await reader.next_batches()
            assert [batch.is_control for batch in batches] == [True]


# Offsets


async def test_offsets(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0", b"1", b"2")
    cluster.log("t").delete_records(1)
    async with reader_of(cluster) as reader:
        assert (await reader.beginning_offset(), await reader.end_offset()) == (1, 3)
        assert await reader.offset_for_time(NOW_MS + 2) == 2
        assert await reader.offset_for_time(NOW_MS + 3) is None


# What passes


async def test_follows_a_leader_that_moves(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0")
    async with reader_of(cluster) as reader:
        records = aiter(reader)
        assert (await anext(records)).value == b"0"
        for number in range(1, 5):
            cluster.move_leader("t", 0, number % 2)
            append(cluster, b"%d" % number)
            assert (await anext(records)).value == b"%d" % number


async def test_reads_on_when_the_leader_dies(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0")
    async with reader_of(cluster) as reader:
        records = aiter(reader)
        await anext(records)
        waiting = asyncio.ensure_future(anext(records))
        await cluster.stop_node(cluster.leader("t"))
        append(cluster, b"1")
        assert (await waiting).value == b"1"


async def test_waits_for_a_leader(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0")
    cluster.topic("t").partitions[0].replicas = (0,)
    cluster.move_leader("t", 0, 0)
    async with reader_of(cluster) as reader:
        await reader.end_offset()
        await cluster.stop_node(0)
        reading = asyncio.ensure_future(values(reader.read_to_end()))
        await asyncio.sleep(0)
        await cluster.start_node(0)
        assert await reading == [b"0"]


class Trouble(Faults):
    """Every kind of trouble in turn: requests and answers lost, topics that seem unknown, former leaders named."""

    def __init__(self) -> None:
        self._count = 0

    def _every(self, number: int) -> bool:
        self._count += 1
        return self._count % number == 0

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        if request.header.api_key not in (ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.CREATE_TOPICS, ApiKey.METADATA):
            return None
        if self._every(5):
            return RequestFault(lost=True)
        return RequestFault(unanswered=True) if self._every(7) else None

    def on_topic_metadata(self, node_id: int, topic: str) -> ErrorCode:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if self._every(3) else ErrorCode.NONE

    def leader(self, node_id: int, partition: Partition) -> tuple[int, int]:
        if self._every(4):
            return 1 - partition.leader, partition.leader_epoch - 1
        return partition.leader, partition.leader_epoch


async def test_every_record_is_read_once_whatever_happens() -> None:
    async with EmbeddedCluster(nodes=2, faults=Trouble()) as cluster:
        cluster.create_topic("t", replication_factor=2)
        sent = [b"%d" % number for number in range(300)]
        for first in range(0, 300, 3):
            append(cluster, *sent[first : first + 3])
        async with reader_of(cluster, max_partition_fetch_bytes=500) as reader:
            assert await values(reader.read_to_end()) == sent


# What does not pass


async def test_offset_out_of_range(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0", b"1", b"2")
    cluster.log("t").delete_records(1)
    async with reader_of(cluster, start=0) as reader:
        with pytest.raises(OffsetOutOfRangeException, match=r"offset 0 is not in the log of t-0: .* 1 and ends at 3"):
            await anext(aiter(reader))
    async with reader_of(cluster, start=4) as reader:
        with pytest.raises(OffsetOutOfRangeException):
            await anext(aiter(reader))


@virtual
async def test_unknown_topic(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:
        config = {**QUICK, "default_api_timeout_ms": 50}
        async with PartitionReader(cluster.bootstrap_servers, "nosuch", 0, **config) as reader:
            with pytest.raises(UnknownTopicOrPartitionException, match="nosuch"):
                await anext(aiter(reader))


@virtual
async def test_asking_creates_no_topic(world: World) -> None:
    async with EmbeddedCluster(listen=listen_on_network) as cluster:
        async with PartitionReader(cluster.bootstrap_servers, "nosuch", 0, default_api_timeout_ms=50) as reader:
            with pytest.raises(UnknownTopicOrPartitionException):
                await reader.end_offset()
        with pytest.raises(UnknownTopicOrPartitionException):
            cluster.topic("nosuch")


@virtual
async def test_unknown_partition(world: World) -> None:
    async with running(listen=listen_on_network) as cluster, reader_of(cluster, 2, default_api_timeout_ms=50) as reader:
        with pytest.raises(UnknownTopicOrPartitionException, match="there is no t-2: topic 't' has partitions 0 to 1"):
            await anext(aiter(reader))


async def test_a_topic_created_anew_is_not_read_on(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0")
    async with reader_of(cluster) as reader:
        records = aiter(reader)
        await anext(records)
        cluster.delete_topic("t")
        cluster.create_topic("t", partitions=2)
        append(cluster, b"another", b"log")
        with pytest.raises(OffsetOutOfRangeException, match="created anew"):
            await anext(records)


@virtual
async def test_no_broker(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:
        servers = cluster.bootstrap_servers
        await cluster.close()
        async with PartitionReader(servers, "t", 0, **QUICK, default_api_timeout_ms=50) as reader:
            with pytest.raises(TimeoutException, match=r"default\.api\.timeout\.ms=50: no broker can be reached"):
                await reader.end_offset()


@virtual
async def test_a_leader_that_stays_away(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:
        cluster.topic("t").partitions[0].replicas = (0,)
        cluster.move_leader("t", 0, 0)
        async with reader_of(cluster, default_api_timeout_ms=100) as reader:
            await reader.end_offset()
            await cluster.stop_node(0)
            with pytest.raises(TimeoutException, match="t-0"):
                await reader.end_offset()


async def test_a_wrong_crc(cluster: EmbeddedCluster) -> None:
    append(cluster, b"0")
    broken = bytearray(make_batch(b"1"))
    broken[-1] ^= 1
    plant(cluster.log("t"), bytes(broken))
    async with reader_of(cluster) as reader:
        with pytest.raises(CorruptRecordException, match="t-0: batch at offset 1: its CRC"):
            await values(reader.read_to_end())


async def test_records_that_are_not_what_the_header_says(cluster: EmbeddedCluster) -> None:
    plant(cluster.log("t"), make_batch(b"0", b"1", count=1))
    async with reader_of(cluster) as reader:
        with pytest.raises(CorruptRecordException, match="t-0: batch at offset 0"):
            await values(reader.read_to_end())


async def test_data_without_a_batch_for_the_offset(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    append(cluster, b"0")
    append(cluster, b"1")
    monkeypatch.setattr(PartitionLog, "read", lambda log, *_, **__: [log._batches[0][:70]])
    async with reader_of(cluster, start=1) as reader:
        with pytest.raises(CorruptRecordException, match="no whole batch"):
            await values(reader.read_to_end())


async def test_nothing_waits_on_a_task_that_died(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    async with reader_of(cluster) as reader:
        assert reader._retrying is not None
        monkeypatch.setattr(reader._retrying.client, "_take_in", die)
        with pytest.raises(KafkaError, match="ZeroDivisionError: a bug"):
            await reader.end_offset()
        with pytest.raises(KafkaError, match="ZeroDivisionError: a bug"):
            await reader.end_offset()


# Misuse


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"start": "first"}, IllegalArgumentException, "'first'"),
        ({"start": -1}, IllegalArgumentException, "-1"),
        ({"partition": -1}, IllegalArgumentException, "partition is -1"),
        ({"fetch_min_byte": 1}, ConfigException, "did you mean 'fetch.min.bytes'"),
        ({"linger_ms": 1}, ConfigException, "unknown reader config 'linger.ms'"),
        ({"isolation_level": "committed"}, ConfigException, "read_uncommitted, read_committed"),
        ({"fetch_max_wait_ms": "soon"}, ConfigException, "'soon'"),
        ({"security_protocol": "TLS"}, ConfigException, "one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ({"bootstrap_servers": "nowhere"}, ConfigException, "nowhere"),
    ],
)
def test_misuse_is_refused(more: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"bootstrap_servers": "localhost:9092", "topic": "t", "partition": 0, **more}
    with pytest.raises(error, match=message):
        PartitionReader(**given)


async def test_a_time_before_the_epoch(cluster: EmbeddedCluster) -> None:
    async with reader_of(cluster) as reader:
        with pytest.raises(IllegalArgumentException, match="-1"):
            await reader.offset_for_time(-1)
