from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.handlers import fetch as fetch_handler
from aioproducer.broker.kafka_apis import MAX_ELEMENTS
from aioproducer.broker.log.partition_log import PartitionLog
from aioproducer.broker.purgatory.purgatories import MOST_WATCHED, PartitionPurgatory
from aioproducer.broker.requests import long_work, slices
from aioproducer.broker.requests.response_memory import SIZE, ResponseMemory
from aioproducer.errors import CorruptRecordException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, PartitionData
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.record_batch import RecordBatch, read_batches

from . import NOW_MS, Connect, RawClient, make_batch

VERSIONS = range(4, 19)
LONG_MS = 60_000


@pytest.fixture(autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", partitions=2)


def append(cluster: EmbeddedCluster, *values: bytes, partition: int = 0) -> int:
    """Appends a batch in process; returns its size."""
    batch = make_batch(*values)
    cluster.log("t", partition).append(RecordBatch(batch), leader_epoch=0, now_ms=NOW_MS)
    return len(batch)


def fetch(cluster: EmbeddedCluster, *offsets: int, **more: Any) -> FetchRequest:
    """Asks for partition 0, 1, … from these offsets on."""
    limit = more.pop("partition_max_bytes", 2**20)
    epoch = more.pop("current_leader_epoch", -1)
    partitions = [
        FetchPartition(index, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=limit)
        for index, offset in enumerate(offsets)
    ]
    more = {"max_wait_ms": 0, "min_bytes": 1, **more}
    return FetchRequest(topics=[FetchTopic("t", cluster.topic("t").id, partitions)], **more)


def produce(cluster: EmbeddedCluster, value: bytes, partition: int = 0) -> ProduceRequest:
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(partition, make_batch(value))])
    return ProduceRequest(acks=-1, topic_data=[data])


async def only(client: RawClient, request: FetchRequest, version: int = 18) -> Any:
    (topic,) = (await client.request(request, version)).responses
    (partition,) = topic.partitions
    return partition


def values(records: Any) -> list[bytes | None]:
    return [record.value for batch in read_batches(records) for record in batch.records()]


@pytest.mark.parametrize("version", VERSIONS)
async def test_read_in_every_version(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    append(cluster, b"a", b"b")
    append(cluster, b"c")
    append(cluster, b"d", partition=1)
    response = await client.request(fetch(cluster, 2, 0), version)
    (topic,) = response.responses
    assert (topic.topic == "t") if version < 13 else (topic.topic_id == cluster.topic("t").id)
    first, second = topic.partitions
    assert (first.error_code, first.high_watermark, first.last_stable_offset) == (ErrorCode.NONE, 3, 3)
    assert first.log_start_offset == (0 if version >= 5 else -1)
    assert values(first.records) == [b"c"]
    assert values(second.records) == [b"d"]


async def test_at_the_end_there_is_nothing(cluster: EmbeddedCluster, client: RawClient) -> None:
    append(cluster, b"a")
    answer = await only(client, fetch(cluster, 1))
    assert (answer.error_code, bytes(answer.records)) == (ErrorCode.NONE, b"")


class TestSizes:
    async def test_of_a_partition(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        size = append(cluster, b"a")
        append(cluster, b"b")
        assert len((await only(client, fetch(cluster, 0, partition_max_bytes=size))).records) == size
        assert len((await only(client, fetch(cluster, 0, partition_max_bytes=1))).records) == size

    async def test_of_the_response(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        size = append(cluster, b"a")
        append(cluster, b"b", partition=1)
        for max_bytes, expected in [(2 * size, [size, size]), (2 * size - 1, [size, 0]), (1, [size, 0])]:
            response = await client.request(fetch(cluster, 0, 0, max_bytes=max_bytes), 18)
            assert [len(partition.records) for partition in response.responses[0].partitions] == expected

    @pytest.mark.parametrize("cluster", [{"configs": {"fetch.max.bytes": 1024}}], indirect=True)
    async def test_of_the_brokers_config(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        size = append(cluster, bytes(900))
        append(cluster, bytes(900))
        assert len((await only(client, fetch(cluster, 0))).records) == size


class TestDuplicates:
    """Kafka keeps a partition that is named twice where it came first, and as it was wanted last."""

    async def test_collapse(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        append(cluster, b"a")
        append(cluster, b"b")
        append(cluster, b"c", partition=1)
        request = fetch(cluster, 0, 0)
        (wanted,) = request.topics
        again = FetchTopic(
            wanted.topic, wanted.topic_id, [FetchPartition(0, fetch_offset=1, partition_max_bytes=2**20)]
        )
        wanted.partitions += wanted.partitions * 100
        request.topics += [again]
        response = await client.request(request, 18)
        (topic,) = response.responses
        assert [(one.partition_index, values(one.records)) for one in topic.partitions] == [(0, [b"b"]), (1, [b"c"])]

    async def test_more_than_a_request_may_name_cost_the_connection(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        topic_id = cluster.topic("t").id
        await client.send(FetchRequest(topics=[FetchTopic("", topic_id, [FetchPartition(0)] * MAX_ELEMENTS)]), 18)
        assert await client.is_closed()
        assert "more elements than are allowed" in caplog.text
        most = FetchRequest(topics=[FetchTopic("", topic_id, [FetchPartition(0)] * (MAX_ELEMENTS - 1))])
        assert await only(await connect(), most)


class TestMemory:
    """What clients do not read has a limit for all of them together."""

    @pytest.fixture(params=[{}, {"data_dir": True}], ids=["memory", "disk"])
    async def cluster(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
        async with EmbeddedCluster(data_dir=tmp_path if request.param else None) as cluster:
            yield cluster

    async def test_it_is_given_back_when_the_response_is_read_or_the_client_leaves(
        self, cluster: EmbeddedCluster, connect: Connect
    ) -> None:
        size = append(cluster, bytes(900_000))
        for _ in range(8):
            append(cluster, bytes(900_000))
        (memory,) = [server.context.response_memory for server in cluster._servers.values()]
        clients = [await connect() for _ in range(2)]
        for client in clients:
            cast(asyncio.Transport, client.writer.transport).pause_reading()
            await client.send(fetch(cluster, 0, partition_max_bytes=2**26), 18)
        while memory.left > SIZE - 18 * size:  # noqa: ASYNC110 - the broker has no event for this
            await asyncio.sleep(0)
        assert memory.left == SIZE - 18 * size
        await clients[0].close()
        cast(asyncio.Transport, clients[1].writer.transport).resume_reading()
        _, response = await clients[1].receive(ApiKey.FETCH, 18)
        assert len(response.responses[0].partitions[0].records) == 9 * size
        while memory.left < SIZE:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert memory.left == SIZE

    async def test_a_fetch_that_finds_little_memory_left_continues_batch_by_batch(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        sizes = [append(cluster, bytes(1000)) for _ in range(3)]
        (memory,) = [server.context.response_memory for server in cluster._servers.values()]
        memory.left = 0
        answer = await only(client, fetch(cluster, 0))
        assert len(answer.records) == sizes[0]
        memory.left = 8 * sizes[0]
        answer = await only(client, fetch(cluster, 0))
        assert len(answer.records) == 2 * sizes[0]


class TestErrors:
    @pytest.mark.parametrize("offset", [-1, 2])
    async def test_offset_out_of_range(self, cluster: EmbeddedCluster, client: RawClient, offset: int) -> None:
        append(cluster, b"a")
        answer = await only(client, fetch(cluster, offset, max_wait_ms=LONG_MS))
        assert (answer.error_code, answer.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)

    @pytest.mark.parametrize(
        ("epoch", "error"),
        [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
    )
    @pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
    async def test_leader_epoch(self, cluster: EmbeddedCluster, connect: Connect, epoch: int, error: ErrorCode) -> None:
        cluster.move_leader("t", 0, 1)
        answer = await only(await connect(1), fetch(cluster, 0, current_leader_epoch=epoch))
        assert answer.error_code == error

    async def test_unknown(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        by_name = FetchRequest(
            max_wait_ms=LONG_MS, min_bytes=1, topics=[FetchTopic("x", partitions=[FetchPartition(0)])]
        )
        assert (await only(client, by_name, 12)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        by_id = FetchRequest(topics=[FetchTopic("", uuid4(), [FetchPartition(0)])])
        assert (await only(client, by_id, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        partition = FetchRequest(topics=[FetchTopic("", cluster.topic("t").id, [FetchPartition(9)])])
        assert (await only(client, partition, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def test_there_are_no_aborted_transactions_except_unknown_ones(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        """As in Kafka, which has an empty list where it does not get as far as the log."""
        assert (await only(client, fetch(cluster, 0, isolation_level=0))).aborted_transactions is None
        assert (await only(client, fetch(cluster, 9))).aborted_transactions is None
        unknown = FetchRequest(topics=[FetchTopic("", cluster.topic("t").id, [FetchPartition(9)])])
        assert (await only(client, unknown)).aborted_transactions == []

    @pytest.mark.parametrize("version", [15, 16])
    @pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
    async def test_not_leader(self, cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
        cluster.move_leader("t", 0, 1)
        response = await client.request(fetch(cluster, 0), version)
        (answer,) = response.responses[0].partitions
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        if version >= 16:
            assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 1)
            assert [node.node_id for node in response.node_endpoints] == [1]
        else:
            assert answer.current_leader.leader_id == -1


class TestSessions:
    """What the rules are is for ``test_fetch_sessions.py``."""

    @pytest.mark.parametrize("version", [4, 7, 18])
    async def test_a_fetch_without_a_session(self, cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
        append(cluster, b"a")
        response = await client.request(fetch(cluster, 0, session_epoch=-1), version)
        assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
        assert values(response.responses[0].partitions[0].records) == [b"a"]

    async def test_are_not_known(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        response = await client.request(fetch(cluster, 0, session_id=5, session_epoch=3), 18)
        assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert response.responses == []

    def more(self, session_id: int, epoch: int, **more: Any) -> FetchRequest:
        return FetchRequest(**{"session_id": session_id, "session_epoch": epoch, "max_wait_ms": 0, **more})

    async def session(self, cluster: EmbeddedCluster, client: RawClient, version: int = 18) -> int:
        """Of both partitions, from their beginning."""
        response = await client.request(fetch(cluster, 0, 0, session_epoch=0), version)
        assert len(response.responses[0].partitions) == 2
        assert response.session_id > 0
        return cast(int, response.session_id)

    @pytest.mark.parametrize("version", [7, 12, 13, 18])
    async def test_a_session_answers_only_changes(
        self, cluster: EmbeddedCluster, client: RawClient, version: int
    ) -> None:
        session = await self.session(cluster, client, version)
        response = await client.request(self.more(session, 1), version)
        assert (response.error_code, response.session_id, response.responses) == (ErrorCode.NONE, session, [])
        append(cluster, b"a", b"b", partition=1)
        (topic,) = (await client.request(self.more(session, 2), version)).responses
        assert (topic.topic == "t") if version < 13 else (topic.topic_id == cluster.topic("t").id)
        (partition,) = topic.partitions
        assert (partition.partition_index, values(partition.records)) == (1, [b"a", b"b"])
        topic_id = cluster.topic("t").id
        moved = [FetchTopic("t", topic_id, [FetchPartition(1, fetch_offset=2, partition_max_bytes=2**20)])]
        response = await client.request(self.more(session, 3, topics=moved), version)
        assert response.responses == []
        append(cluster, b"c")
        forget = [ForgottenTopic("t", topic_id, [0])]
        assert (await client.request(self.more(session, 4, forgotten_topics_data=forget), version)).responses == []
        forget = [ForgottenTopic("t", topic_id, [1])]
        response = await client.request(self.more(session, 5, forgotten_topics_data=forget), version)
        assert (response.session_id, response.responses) == (0, []), "nothing is left of it"
        assert not cluster.metrics().select("FetchSessionCache")["NumIncrementalFetchSessions"]

    async def test_wait_for_all_of_their_partitions(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        session = await self.session(cluster, client)
        await client.send(self.more(session, 1, max_wait_ms=LONG_MS, min_bytes=1), 18)
        while not cluster.delayed_fetches:  # noqa: ASYNC110 - the broker has no event for this
            await asyncio.sleep(0)
        await (await connect()).request(produce(cluster, b"a", partition=1), 13)
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert [one.partition_index for one in response.responses[0].partitions] == [1]

    async def test_errors(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        session = await self.session(cluster, client)
        response = await client.request(self.more(session, 2), 18)
        assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        response = await client.request(self.more(session, 1), 12)
        assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        response = await client.request(fetch(cluster, 0, session_id=session, session_epoch=-1), 18)
        assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
        response = await client.request(self.more(session, 1), 18)
        assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    async def test_errors_are_in_every_answer(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        session = await self.session(cluster, client)
        cluster.delete_topic("t")
        for epoch in (1, 2):
            (topic,) = (await client.request(self.more(session, epoch, max_wait_ms=LONG_MS), 18)).responses
            assert [one.error_code for one in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2

    async def test_are_of_one_node(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await self.session(cluster, client)
        figures = cluster.metrics().select("FetchSessionCache", node_id="node-0")
        assert figures["NumIncrementalFetchSessions"] == 1
        assert figures["NumIncrementalFetchPartitionsCached"] == 2
        assert figures["IncrementalFetchSessionEvictionsPerSec"] == 0

    @pytest.mark.parametrize("cluster", [{"configs": {"max.incremental.fetch.session.cache.slots": 0}}], indirect=True)
    async def test_have_no_slots(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        append(cluster, b"a")
        response = await client.request(fetch(cluster, 0, session_epoch=0), 18)
        assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)


class TestLongPolling:
    """A long wait would run into the test's time-out: these tests are over before, or the waiting is broken."""

    async def wait_until_parked(self, cluster: EmbeddedCluster) -> None:
        while not cluster.delayed_fetches:  # noqa: ASYNC110 - the broker has no event for this
            await asyncio.sleep(0)

    async def test_records_that_come_while_it_waits(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        await client.send(fetch(cluster, 0, max_wait_ms=LONG_MS), 18)
        await self.wait_until_parked(cluster)
        await (await connect()).request(produce(cluster, b"a"), 13)
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert values(response.responses[0].partitions[0].records) == [b"a"]
        assert not cluster.delayed_fetches

    async def test_enough_records(self, cluster: EmbeddedCluster, client: RawClient, connect: Connect) -> None:
        min_bytes = 2 * len(make_batch(b"a"))
        await client.send(fetch(cluster, 0, 0, max_wait_ms=LONG_MS, min_bytes=min_bytes), 18)
        await self.wait_until_parked(cluster)
        producer = await connect()
        await producer.request(produce(cluster, b"a"), 13)
        assert cluster.delayed_fetches
        await producer.request(produce(cluster, b"b", partition=1), 13)
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert [values(partition.records) for partition in response.responses[0].partitions] == [[b"a"], [b"b"]]

    async def test_an_append_costs_the_same_however_many_partitions_a_fetch_waits_for(
        self, cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster.create_topic("wide", partitions=50)
        looked_at: list[str] = []
        readable = PartitionLog.readable

        def counting(log: PartitionLog, fetch_offset: int, counted_to: int, *, committed: bool = False) -> Any:
            looked_at.append(log.name)
            return readable(log, fetch_offset, counted_to, committed=committed)

        monkeypatch.setattr(PartitionLog, "readable", counting)
        wide = FetchTopic("wide", cluster.topic("wide").id, [FetchPartition(index) for index in range(50)])
        await client.send(FetchRequest(max_wait_ms=LONG_MS, min_bytes=2**20, topics=[wide]), 18)
        while len(looked_at) < 50:  # noqa: ASYNC110 - it looks at some of them each turn
            await asyncio.sleep(0)
        looked_at.clear()
        cluster.topic("wide").partitions[7].notify()
        assert looked_at == ["wide-7"]

    async def test_a_limit_below_the_wanted_bytes_is_enough(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        size = len(make_batch(b"a"))
        await client.send(fetch(cluster, 0, max_wait_ms=LONG_MS, min_bytes=10 * size, max_bytes=size), 18)
        await self.wait_until_parked(cluster)
        await (await connect()).request(produce(cluster, b"a"), 13)
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert values(response.responses[0].partitions[0].records) == [b"a"]

    async def test_records_deleted_while_it_waits_do_not_count(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        size = append(cluster, b"a")
        await client.send(fetch(cluster, 0, max_wait_ms=LONG_MS, min_bytes=2 * size), 18)
        await self.wait_until_parked(cluster)
        partition = cluster.topic("t").partitions[0]
        partition.log.delete_records(1)
        partition.notify()
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert response.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    async def test_its_time_is_up(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        answer = await only(client, fetch(cluster, 0, max_wait_ms=5))
        assert (answer.error_code, bytes(answer.records)) == (ErrorCode.NONE, b"")
        assert not cluster.delayed_fetches

    async def test_nothing_to_wait_for(self, client: RawClient, cluster: EmbeddedCluster) -> None:
        assert (await client.request(FetchRequest(max_wait_ms=LONG_MS, min_bytes=1), 18)).responses == []
        assert await only(client, fetch(cluster, 0, max_wait_ms=LONG_MS, min_bytes=0))

    @pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
    async def test_the_leader_changes(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await client.send(fetch(cluster, 0, max_wait_ms=LONG_MS), 18)
        await self.wait_until_parked(cluster)
        cluster.move_leader("t", 0, 1)
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    async def test_the_topic_is_deleted(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await client.send(fetch(cluster, 0, max_wait_ms=LONG_MS), 18)
        await self.wait_until_parked(cluster)
        cluster.delete_topic("t")
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    async def test_the_next_request_waits_for_its_turn(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        first = await client.send(fetch(cluster, 0, max_wait_ms=LONG_MS), 18)
        second = await client.send(MetadataRequest([]), 13)
        await self.wait_until_parked(cluster)
        await (await connect()).request(produce(cluster, b"a"), 13)
        assert (await client.receive(ApiKey.FETCH, 18))[0] == first
        assert (await client.receive(ApiKey.METADATA, 13))[0] == second

    async def test_the_broker_stops(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await client.send(fetch(cluster, 0, max_wait_ms=LONG_MS), 18)
        await self.wait_until_parked(cluster)
        partition = cluster.topic("t").partitions[0]
        await cluster.close()
        assert not partition._watchers


class TestManyPartitions:
    """A fetch that waits for many partitions looks at them in slices, and an append may come in between."""

    COUNT = 500

    @pytest.fixture(autouse=True)
    def wide(self, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        cluster.create_topic("wide", partitions=self.COUNT)
        # Every slice has one step: some thirty partitions.
        monkeypatch.setattr(long_work, "FIRST_SLICE", 0)
        monkeypatch.setattr(long_work, "AT_ONCE", 0)
        monkeypatch.setattr(slices, "SLICE", 0)

    def request(self, cluster: EmbeddedCluster, *more: int, **fields: Any) -> FetchRequest:
        partitions = [
            FetchPartition(index, fetch_offset=0, partition_max_bytes=2**20) for index in (*range(self.COUNT), *more)
        ]
        topics = [FetchTopic("wide", cluster.topic("wide").id, partitions)]
        return FetchRequest(topics=topics, **{"max_wait_ms": LONG_MS, "min_bytes": 1, **fields})

    def append(self, cluster: EmbeddedCluster, index: int) -> None:
        partition = cluster.topic("wide").partitions[index]
        partition.log.append(RecordBatch(make_batch(b"a")), leader_epoch=0, now_ms=NOW_MS)
        partition.notify()

    def purgatory(self, cluster: EmbeddedCluster) -> PartitionPurgatory:
        (server,) = cluster._servers.values()
        return server.context.purgatories.fetch

    async def all_watched(self, cluster: EmbeddedCluster) -> None:
        while self.purgatory(cluster).watched < self.COUNT:  # noqa: ASYNC110 - the broker has no event for this
            await asyncio.sleep(0)

    async def forgotten(self, cluster: EmbeddedCluster) -> None:
        """Nothing is left of fetches that have ended."""
        purgatory = self.purgatory(cluster)
        while purgatory.watched or purgatory.places < MOST_WATCHED:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert purgatory.places == MOST_WATCHED

    @pytest.mark.parametrize("cluster", [{}, {"data_dir": "data"}], indirect=True, ids=["memory", "disk"])
    async def test_it_is_freed_without_the_garbage_collector(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        """A broker that is busy collects only young objects, so a cycle would hold a large request for long."""
        await client.request(self.request(cluster, max_wait_ms=1), 18)
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await client.request(self.request(cluster, max_wait_ms=1), 18)
            await self.forgotten(cluster)
            gc.collect()
            assert not [one for one in gc.garbage if isinstance(one, FetchPartition | PartitionData)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()

    async def test_records_that_come_while_it_waits(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await client.send(self.request(cluster), 18)
        await self.all_watched(cluster)
        assert self.purgatory(cluster).places == MOST_WATCHED - self.COUNT
        self.append(cluster, 7)
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert values(response.responses[0].partitions[7].records) == [b"a"]
        await self.forgotten(cluster)

    @pytest.mark.parametrize("index", [0, 250, 499])
    async def test_records_that_come_between_two_slices(
        self, cluster: EmbeddedCluster, client: RawClient, index: int
    ) -> None:
        await client.send(self.request(cluster), 18)
        while not (watched := self.purgatory(cluster).watched):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert watched < 100, "it has looked at a part"
        self.append(cluster, index)
        _, response = await client.receive(ApiKey.FETCH, 18)
        assert values(response.responses[0].partitions[index].records) == [b"a"]
        await self.forgotten(cluster)

    async def test_its_time_is_up(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        response = await client.request(self.request(cluster, max_wait_ms=1), 18)
        assert len(response.responses[0].partitions) == self.COUNT
        await self.forgotten(cluster)

    async def test_a_fetch_with_a_failed_partition_is_answered_at_once(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        response = await client.request(self.request(cluster, self.COUNT), 18)
        assert response.responses[0].partitions[-1].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await self.forgotten(cluster)

    @pytest.mark.parametrize("rounds", [0, 5, 100])
    async def test_the_client_leaves(self, cluster: EmbeddedCluster, connect: Connect, rounds: int) -> None:
        client = await connect()
        await client.send(self.request(cluster), 18)
        while not self.purgatory(cluster).watched:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for _ in range(rounds):
            await asyncio.sleep(0)
        await client.close()
        await self.forgotten(cluster)

    async def test_without_places_it_is_answered_at_once(
        self, cluster: EmbeddedCluster, client: RawClient, connect: Connect
    ) -> None:
        purgatory = self.purgatory(cluster)
        purgatory.places = 2 * self.COUNT - 1
        await client.send(self.request(cluster), 18)
        await self.all_watched(cluster)
        other = await connect()
        response = await other.request(self.request(cluster), 18)
        assert len(response.responses[0].partitions) == self.COUNT
        purgatory.places += MOST_WATCHED - 2 * self.COUNT + 1
        self.append(cluster, 0)
        await client.receive(ApiKey.FETCH, 18)
        await self.forgotten(cluster)

    async def test_the_broker_stops(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        await client.send(self.request(cluster), 18)
        await self.all_watched(cluster)
        await cluster.close()
        assert not any(partition._watchers for partition in cluster.topic("wide").partitions)


class TestDivergence:
    """The log was cut at offset 2 since the client read epoch 0 up to offset 3, and continues in epoch 1."""

    @pytest.fixture(autouse=True)
    def cut(self, cluster: EmbeddedCluster) -> None:
        partition = cluster.topic("t").partitions[0]
        append(cluster, b"a", b"b")
        partition.elect(partition.leader)
        partition.log.append(RecordBatch(make_batch(b"c", b"d")), leader_epoch=1, now_ms=NOW_MS)

    def after(self, cluster: EmbeddedCluster, offset: int, epoch: int, **more: Any) -> FetchRequest:
        request = fetch(cluster, offset, **more)
        request.topics[0].partitions[0].last_fetched_epoch = epoch
        return request

    async def test_a_diverging_epoch_is_answered_at_once(self, client: RawClient, cluster: EmbeddedCluster) -> None:
        answer = await only(client, self.after(cluster, 3, 0, max_wait_ms=LONG_MS, min_bytes=10_000))
        assert (answer.error_code, answer.records) == (ErrorCode.NONE, b"")
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 2)
        assert (answer.high_watermark, answer.log_start_offset) == (4, 0)

    async def test_a_client_that_agrees_with_the_log_reads(self, client: RawClient, cluster: EmbeddedCluster) -> None:
        for offset, epoch in ((0, 0), (2, 0), (3, 1), (3, -1)):
            answer = await only(client, self.after(cluster, offset, epoch))
            assert answer.diverging_epoch.epoch == -1
            assert len(answer.records) > 0

    async def test_an_epoch_that_is_not_known(self, client: RawClient, cluster: EmbeddedCluster) -> None:
        answer = await only(client, self.after(cluster, 3, 7))
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


class TestManyBytes:
    """A fetch of many bytes is read a part at a time, in slices."""

    BATCH = 1_000

    @pytest.fixture(autouse=True)
    def parts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fetch_handler, "_BYTES_AT_ONCE", 3 * self.BATCH)
        monkeypatch.setattr(long_work, "FIRST_SLICE", 0)
        monkeypatch.setattr(long_work, "AT_ONCE", 0)
        monkeypatch.setattr(slices, "SLICE", 0)

    def append(self, cluster: EmbeddedCluster, count: int = 20) -> list[bytes | None]:
        found: list[bytes | None] = [str(number).encode().ljust(self.BATCH, b".") for number in range(count)]
        for value in found:
            append(cluster, value or b"")
        return found

    def memory(self, cluster: EmbeddedCluster) -> ResponseMemory:
        (server,) = cluster._servers.values()
        return server.context.response_memory

    @pytest.mark.parametrize("cluster", [{}, {"data_dir": "data"}], indirect=True, ids=["memory", "disk"])
    async def test_all_of_it_is_read(
        self, cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sizes: list[int] = []
        read = PartitionLog.read

        def noted(log: PartitionLog, *args: Any, **options: Any) -> Any:
            found = read(log, *args, **options)
            sizes.append(len(found))
            return found

        wanted = self.append(cluster)
        monkeypatch.setattr(PartitionLog, "read", noted)
        assert values((await only(client, fetch(cluster, 0))).records) == wanted
        assert sum(sizes) == 20
        assert max(sizes) == 3, "batches at a time"
        assert self.memory(cluster).left == SIZE

    @pytest.mark.parametrize("batches", [3, 4, 7])
    async def test_no_more_than_it_may_have(self, cluster: EmbeddedCluster, client: RawClient, batches: int) -> None:
        wanted = self.append(cluster)
        size = len(make_batch(wanted[0] or b""))
        request = fetch(cluster, 0, partition_max_bytes=batches * size + 10)
        assert values((await only(client, request)).records) == wanted[:batches]
        request = fetch(cluster, 0, max_bytes=batches * size + 10)
        assert values((await only(client, request)).records) == wanted[:batches]

    async def test_a_part_that_cannot_be_read_ends_it(
        self, cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wanted = self.append(cluster)
        read = PartitionLog.read

        def failing(log: PartitionLog, offset: int, *args: Any, **options: Any) -> Any:
            if offset >= 6:
                raise CorruptRecordException("bad")
            return read(log, offset, *args, **options)

        monkeypatch.setattr(PartitionLog, "read", failing)
        answer = await only(client, fetch(cluster, 0))
        assert (answer.error_code, values(answer.records)) == (ErrorCode.NONE, wanted[:6])
        assert self.memory(cluster).left == SIZE

    async def test_a_topic_that_is_deleted_meanwhile(
        self, cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wanted = self.append(cluster)
        read = PartitionLog.read

        def deleting(log: PartitionLog, offset: int, *args: Any, **options: Any) -> Any:
            if offset == 3:
                cluster.delete_topic("t")
            return read(log, offset, *args, **options)

        monkeypatch.setattr(PartitionLog, "read", deleting)
        answer = await only(client, fetch(cluster, 0))
        assert (answer.error_code, values(answer.records)) == (ErrorCode.NONE, wanted[:6])

    async def test_the_client_leaves(self, cluster: EmbeddedCluster, client: RawClient) -> None:
        self.append(cluster)
        await client.send(fetch(cluster, 0), 18)
        while self.memory(cluster).left == SIZE:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await client.close()
        while self.memory(cluster).left < SIZE:  # noqa: ASYNC110
            await asyncio.sleep(0)
