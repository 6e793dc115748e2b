"""Transactions over the wire, in both protocols: producer ids, partitions, offsets, ends, and what readers see."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from aioproducer.records.record_batch import read_batches

from . import Connect, RawClient, make_batch

FIRST, SECOND = 1, 2
"""The protocols."""

PROTOCOLS = [FIRST, SECOND]


@pytest.fixture(autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", partitions=2)


class Identity(NamedTuple):
    producer_id: int
    epoch: int


class Producer:
    """A transactional producer in one of the protocols, one request at a time."""

    def __init__(self, cluster: EmbeddedCluster, client: RawClient, protocol: int, transactional_id: str = "x") -> None:
        self.cluster = cluster
        self.client = client
        self.protocol = protocol
        self.transactional_id = transactional_id
        self.identity = Identity(-1, -1)
        self.sequences = [0, 0]

    async def init(self, *, timeout_ms: int = 60_000, keep: bool = False) -> ErrorCode:
        identity = self.identity if keep else (-1, -1)
        response = await self.client.request(InitProducerIdRequest(self.transactional_id, timeout_ms, *identity), 5)
        if response.error_code == ErrorCode.NONE:
            self.identity = Identity(response.producer_id, response.producer_epoch)
            self.sequences = [0, 0]
        return ErrorCode(response.error_code)

    async def add(self, *partitions: int, topic: str = "t", version: int = 3) -> list[ErrorCode]:
        topics = [AddPartitionsToTxnTopic(topic, list(partitions))]
        request = AddPartitionsToTxnRequest([], self.transactional_id, *self.identity, topics)
        (answer,) = (await self.client.request(request, version)).results_by_topic_v3_and_below
        return [ErrorCode(partition.partition_error_code) for partition in answer.results_by_partition]

    async def write(self, *values: bytes, partition: int = 0, version: int | None = None) -> ErrorCode:
        """Adds the partition first, where that is the protocol."""
        if version is None:
            version = 13 if self.protocol == SECOND else 11
            if self.protocol == FIRST:
                (code,) = await self.add(partition)
                if code is not ErrorCode.NONE:
                    return code
        batch = make_batch(
            *values,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.sequences[partition],
            transactional=True,
        )
        topics = [TopicProduceData("t", self.cluster.topic("t").id, [PartitionProduceData(partition, batch)])]
        response = await self.client.request(ProduceRequest(self.transactional_id, -1, 1000, topics), version)
        (answer,) = response.responses[0].partition_responses
        if answer.error_code == ErrorCode.NONE:
            self.sequences[partition] += len(values)
        return ErrorCode(answer.error_code)

    async def end(self, committed: bool, *, identity: Identity | None = None) -> ErrorCode:
        version = 5 if self.protocol == SECOND else 4
        request = EndTxnRequest(self.transactional_id, *(identity or self.identity), committed)
        response = await self.client.request(request, version)
        if version == 5 and response.error_code == ErrorCode.NONE:
            self.identity = Identity(response.producer_id, response.producer_epoch)
            self.sequences = [0, 0]
        return ErrorCode(response.error_code)

    async def commit_offset(self, group: str, offset: int) -> ErrorCode:
        if self.protocol == FIRST:
            request = AddOffsetsToTxnRequest(self.transactional_id, *self.identity, group)
            response = await self.client.request(request, 4)
            if response.error_code != ErrorCode.NONE:
                return ErrorCode(response.error_code)
        partition = TxnOffsetCommitRequestPartition(0, offset, -1, "m")
        response = await self.client.request(
            TxnOffsetCommitRequest(
                self.transactional_id,
                group,
                *self.identity,
                topics=[TxnOffsetCommitRequestTopic("t", [partition])],
            ),
            5 if self.protocol == SECOND else 4,
        )
        return ErrorCode(response.topics[0].partitions[0].error_code)


@pytest.fixture(params=PROTOCOLS, ids=["v1", "v2"])
def producer(request: pytest.FixtureRequest, cluster: EmbeddedCluster, client: RawClient) -> Producer:
    return Producer(cluster, client, request.param)


async def read(client: RawClient, *, committed: bool, partition: int = 0) -> tuple[list[bytes | None], int]:
    """What a consumer sees, aborted transactions left out if it reads ``committed``, and the last stable offset."""
    wanted = [FetchTopic("t", partitions=[FetchPartition(partition, fetch_offset=0, partition_max_bytes=1_000_000)])]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=int(committed), topics=wanted)
    ((answer,),) = [topic.partitions for topic in (await client.request(request, 12)).responses]
    aborted = {(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()}
    hidden: set[int] = set()
    values: list[bytes | None] = []
    for batch in read_batches(answer.records or b""):
        if batch.is_control:
            hidden.discard(batch.producer_id)
            continue
        if (batch.producer_id, batch.base_offset) in aborted:
            hidden.add(batch.producer_id)
        if batch.producer_id not in hidden:
            values += [record.value for record in batch.records()]
    return values, answer.last_stable_offset


async def test_committed_records_are_read_and_aborted_ones_are_not(producer: Producer) -> None:
    assert await producer.init() is ErrorCode.NONE
    for number in range(6):
        assert await producer.write(b"%d a" % number, b"%d b" % number) is ErrorCode.NONE
        assert await producer.end(number % 2 == 0) is ErrorCode.NONE
    values, stable = await read(producer.client, committed=True)
    assert values == [b"0 a", b"0 b", b"2 a", b"2 b", b"4 a", b"4 b"]
    assert stable == 18
    values, _ = await read(producer.client, committed=False)
    assert len(values) == 12


async def test_nothing_is_read_beyond_a_transaction_under_way(producer: Producer) -> None:
    await producer.init()
    await producer.write(b"done")
    await producer.end(True)
    await producer.write(b"under way")
    producer.cluster.log("t").append(
        next(iter(read_batches(make_batch(b"of another")))), leader_epoch=0, now_ms=producer.cluster._clock.time_ms()
    )
    assert await read(producer.client, committed=True) == ([b"done"], 2)
    assert (await read(producer.client, committed=False))[0] == [b"done", b"under way", b"of another"]
    await producer.end(True)
    assert await read(producer.client, committed=True) == ([b"done", b"under way", b"of another"], 5)


async def test_the_latest_stable_offset(producer: Producer) -> None:
    await producer.init()
    await producer.write(b"a")
    for isolation_level, end in ((0, 1), (1, 0)):
        topics = [ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=-1)])]
        response = await producer.client.request(ListOffsetsRequest(-1, isolation_level, topics), 6)
        assert response.topics[0].partitions[0].offset == end


async def test_the_second_protocol_bumps_the_epoch_and_the_first_does_not(producer: Producer) -> None:
    await producer.init()
    before = producer.identity
    await producer.write(b"a")
    await producer.end(True)
    assert producer.identity == (before.producer_id, before.epoch + (producer.protocol == SECOND))


async def test_a_transaction_that_is_ended_twice_ends_once(producer: Producer) -> None:
    await producer.init()
    await producer.write(b"a")
    before = producer.identity
    assert await producer.end(True) is ErrorCode.NONE
    after = producer.identity
    assert await producer.end(True, identity=before) is ErrorCode.NONE
    assert producer.identity == after
    assert await producer.end(False, identity=before) is ErrorCode.INVALID_TXN_STATE
    assert producer.cluster.log("t").log_end_offset == 2


async def test_an_end_without_a_beginning(producer: Producer) -> None:
    await producer.init()
    assert await producer.end(True) is ErrorCode.INVALID_TXN_STATE
    # Since KIP-890 an abort is always allowed: it makes sure of what may still be on its way.
    expected = ErrorCode.NONE if producer.protocol == SECOND else ErrorCode.INVALID_TXN_STATE
    assert await producer.end(False) is expected


async def test_the_older_of_two_producers_is_fenced_and_its_transaction_aborted(producer: Producer) -> None:
    await producer.init()
    await producer.write(b"of the older")
    newer = Producer(producer.cluster, producer.client, producer.protocol)
    assert await newer.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (await read(producer.client, committed=True))[0] == []
    assert producer.cluster.log("t").open_transactions == set()
    assert await newer.init() is ErrorCode.NONE
    assert newer.identity.producer_id == producer.identity.producer_id
    assert newer.identity.epoch > producer.identity.epoch
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if producer.protocol == SECOND else ErrorCode.PRODUCER_FENCED
    assert await producer.write(b"too late") is fenced
    assert await producer.end(True) is ErrorCode.PRODUCER_FENCED
    assert await producer.init(keep=True) is ErrorCode.PRODUCER_FENCED
    assert await newer.write(b"of the newer") is ErrorCode.NONE
    await newer.end(True)
    assert (await read(producer.client, committed=True))[0] == [b"of the newer"]


async def test_a_producer_may_bump_its_own_epoch(producer: Producer) -> None:
    await producer.init()
    before = producer.identity
    await producer.write(b"given up")
    assert await producer.init(keep=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert await producer.init(keep=True) is ErrorCode.NONE
    after = producer.identity
    assert after.epoch > before.epoch
    await producer.write(b"kept")
    await producer.end(True)
    assert (await read(producer.client, committed=True))[0] == [b"kept"]


async def test_an_older_epoch_of_the_producer_id_aborts_the_open_transaction_and_is_fenced_then(
    producer: Producer,
) -> None:
    """As in Kafka: which epoch it has is looked at once no transaction is under way."""
    await producer.init()
    older = producer.identity
    await producer.init()
    await producer.write(b"aborted")
    producer.identity = older
    assert await producer.init(keep=True) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert producer.cluster.log("t").open_transactions == set()
    assert await producer.init(keep=True) is ErrorCode.PRODUCER_FENCED


async def test_a_stranger_does_not_abort_the_open_transaction(producer: Producer) -> None:
    await producer.init()
    await producer.write(b"kept")
    own = producer.identity
    producer.identity = Identity(own.producer_id + 100, 0)
    assert await producer.init(keep=True) is ErrorCode.PRODUCER_FENCED
    producer.identity = own
    assert await producer.end(True) is ErrorCode.NONE
    assert (await read(producer.client, committed=True))[0] == [b"kept"]


async def test_a_transaction_that_takes_too_long_is_aborted(producer: Producer) -> None:
    """An expired transaction is aborted and its producer fenced. With the second protocol the producer continues after
    it has aborted the transaction, too."""
    await producer.init(timeout_ms=50)
    await producer.write(b"slow")
    async with asyncio.timeout(10):
        while (await read(producer.client, committed=True))[1] < 2:  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
    if producer.protocol == FIRST:
        assert await producer.end(True) is ErrorCode.PRODUCER_FENCED
        assert await producer.end(False) is ErrorCode.PRODUCER_FENCED
        assert (await read(producer.client, committed=True))[0] == []
    else:
        assert await producer.end(True) is ErrorCode.INVALID_TXN_STATE
        assert await producer.end(False) is ErrorCode.NONE
        await producer.write(b"next")
        assert await producer.end(True) is ErrorCode.NONE
        assert (await read(producer.client, committed=True))[0] == [b"next"]


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
async def test_a_timeout_out_of_range(producer: Producer, timeout_ms: int) -> None:
    assert await producer.init(timeout_ms=timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


async def test_an_unknown_transactional_id_has_no_producer_id(producer: Producer) -> None:
    producer.identity = Identity(7, 0)
    assert await producer.end(True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await producer.write(b"a") is ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_another_producer_id_is_refused(producer: Producer) -> None:
    await producer.init()
    assert await producer.end(True, identity=Identity(999, 0)) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_the_epochs_run_out(producer: Producer) -> None:
    await producer.init()
    metadata = producer.cluster._transactions.transaction("x")
    assert metadata is not None
    metadata.producer_epoch = 2**15 - 2
    producer.identity = Identity(producer.identity.producer_id, 2**15 - 2)
    await producer.write(b"last of its id")
    await producer.end(True)
    if producer.protocol == FIRST:
        await producer.init(keep=True)
    assert producer.identity.epoch == 0
    assert await producer.write(b"first of the next") is ErrorCode.NONE
    await producer.end(True)
    assert (await read(producer.client, committed=True))[0] == [b"last of its id", b"first of the next"]


class TestTheFirstProtocol:
    @pytest.fixture
    def producer(self, cluster: EmbeddedCluster, client: RawClient) -> Producer:
        return Producer(cluster, client, FIRST)

    async def test_a_partition_must_be_added_before_it_is_written_to(self, producer: Producer) -> None:
        await producer.init()
        assert await producer.write(b"a", version=11) is ErrorCode.TRANSACTION_ABORTABLE
        assert await producer.write(b"a", version=10) is ErrorCode.INVALID_TXN_STATE
        assert await producer.add(1) == [ErrorCode.NONE]
        assert await producer.write(b"a", version=11) is ErrorCode.TRANSACTION_ABORTABLE
        assert await producer.write(b"a", partition=1, version=11) is ErrorCode.NONE

    async def test_partitions_are_added_together_or_not_at_all(self, producer: Producer) -> None:
        await producer.init()
        assert await producer.add(0, 7) == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert await producer.write(b"a", version=11) is ErrorCode.TRANSACTION_ABORTABLE

    @pytest.mark.parametrize(
        ("version", "code"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)]
    )
    async def test_older_versions_have_another_name_for_fencing(
        self, producer: Producer, version: int, code: ErrorCode
    ) -> None:
        await producer.init()
        producer.identity = Identity(producer.identity.producer_id, 17)
        assert await producer.add(0, version=version) == [code]

    async def test_a_group_must_be_added_before_its_offsets_are_committed(self, producer: Producer) -> None:
        await producer.init()
        assert await producer.add(0) == [ErrorCode.NONE]
        partition = TxnOffsetCommitRequestPartition(0, 5, -1, None)
        request = TxnOffsetCommitRequest(
            "x", "g", *producer.identity, topics=[TxnOffsetCommitRequestTopic("t", [partition])]
        )
        for version, code in ((3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)):
            response = await producer.client.request(request, version)
            assert response.topics[0].partitions[0].error_code == code


async def offset_of(client: RawClient, group: str, *, require_stable: bool = False) -> tuple[int, ErrorCode]:
    groups = [OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics("t", partition_indexes=[0])])]
    response = await client.request(OffsetFetchRequest(groups=groups, require_stable=require_stable), 8)
    (partition,) = response.groups[0].topics[0].partitions
    return partition.committed_offset, ErrorCode(partition.error_code)


async def test_offsets_count_when_the_transaction_is_committed(producer: Producer) -> None:
    client = producer.client
    await producer.init()
    for number, committed, expected in ((1, True, 1), (2, False, 1), (3, True, 3)):
        before = await offset_of(client, "g")
        assert await producer.commit_offset("g", number) is ErrorCode.NONE
        assert await offset_of(client, "g") == before
        assert await offset_of(client, "g", require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        assert await producer.end(committed) is ErrorCode.NONE
        assert await offset_of(client, "g", require_stable=True) == (expected, ErrorCode.NONE)


async def test_offsets_of_a_fenced_producer_are_refused(producer: Producer) -> None:
    await producer.init()
    newer = Producer(producer.cluster, producer.client, producer.protocol)
    await newer.init()
    assert await producer.commit_offset("g", 1) in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
    assert await offset_of(producer.client, "g") == (-1, ErrorCode.NONE)


@pytest.mark.parametrize("cluster", [{"nodes": 3}], indirect=True)
async def test_only_the_coordinator_answers(cluster: EmbeddedCluster, connect: Connect) -> None:
    coordinator = cluster._state.nodes.coordinator("x")
    assert coordinator is not None
    codes = []
    for node in range(3):
        producer = Producer(cluster, await connect(node), SECOND)
        codes.append(await producer.init())
    assert [code is ErrorCode.NONE for code in codes] == [node == coordinator for node in range(3)]
    assert set(codes) == {ErrorCode.NONE, ErrorCode.NOT_COORDINATOR}
