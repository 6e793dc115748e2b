"""Permissions on nodes with an authorizer; ``against_apache_kafka/test_access.py`` goes through every API."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.authorization.authorizer import STANDARD, Client, StandardAuthorizer
from aioproducer.broker.handlers import delete_acls, metadata, produce
from aioproducer.broker.requests.long_work import LongWork
from aioproducer.broker.requests.request import Request
from aioproducer.errors import (
    ConfigException,
    GroupAuthorizationException,
    KafkaError,
    TopicAuthorizationException,
    TransactionAbortableException,
    TransactionalIdAuthorizationException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.compression import CompressionType
from aioproducer.testing.kafka.apache_kafka import KafkaTools
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient
from tests.broker.raw_clients.sasl import CONFIGS, ESCAPED, alice, java_configs, log_in
from tests.broker.requests.test_long_work import Channel

TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE = AclOperation.READ, AclOperation.WRITE
GUARDED = {**CONFIGS, "authorizer.class.name": STANDARD, "super.users": "User:root"}


def may(kind: ResourceType, name: str, operation: AclOperation, **more: Any) -> AclBinding:
    return AclBinding(resource_type=kind, name=name, operation=operation, **{"principal": "User:alice", **more})


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(2, configs=GUARDED) as cluster:
        cluster.create_topic("t", 2)
        yield cluster


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[RawClient]:
    """Alice."""
    client = await RawClient.connect(cluster.bootstrap_servers.split(",")[0])
    await log_in(client)
    yield client
    await client.close()


def denials(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "aioproducer.broker.handlers.access"]


async def test_denials_are_logged_once_a_request(
    cluster: EmbeddedCluster, client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    data = TopicProduceData("t", partition_data=[PartitionProduceData(n, make_batch(b"x")) for n in range(2)])
    answer = await client.request(ProduceRequest(acks=-1, topic_data=[data]), 9)
    assert {one.error_code for one in answer.responses[0].partition_responses} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert denials(caplog) == ["User:alice from 127.0.0.1 may not WRITE TOPIC t"]
    caplog.clear()
    assert (await client.request(MetadataRequest(None), 12)).topics == []
    assert denials(caplog) == []  # nothing was named


async def test_a_name_that_a_terminal_would_obey_is_logged_without_harm(
    client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await client.request(MetadataRequest([MetadataRequestTopic(name="a\n\x1b[2J")]), 12)
    assert denials(caplog) == ["User:alice from 127.0.0.1 may not DESCRIBE TOPIC a\\n\\x1b[2J"]


async def test_a_batch_for_a_forbidden_topic_is_not_decompressed(
    cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[object] = []
    monkeypatch.setattr("aioproducer.broker.handlers.produce.scan", lambda *batch: scanned.append(batch))
    server = cluster._servers[0]
    monkeypatch.setattr(server.context.scanner, "scan", lambda batches, then: scanned.append(batches))
    data = TopicProduceData("t", partition_data=[PartitionProduceData(0, make_batch(b"x", codec=CompressionType.GZIP))])
    answer = await client.request(ProduceRequest(acks=-1, topic_data=[data]), 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert scanned == []


@contextlib.asynccontextmanager
async def transactional(cluster: EmbeddedCluster) -> AsyncIterator[KafkaProducer]:
    configs = alice(cluster, transactional_id="x", retry_backoff_ms=1)
    async with KafkaProducer(**configs) as producer:
        await producer.init_transactions()
        yield producer


EVERYTHING = [may(TOPIC, "t", WRITE), may(TRANSACTIONAL_ID, "x", WRITE), may(GROUP, "g", READ), may(TOPIC, "in", READ)]


class TestRevokedInTheMiddle:
    """Of a transaction of the real producer."""

    @pytest.fixture(autouse=True)
    def granted(self, cluster: EmbeddedCluster) -> None:
        cluster.create_topic("in")
        cluster.create_acls(*EVERYTHING)

    async def test_writing_to_a_topic(self, cluster: EmbeddedCluster) -> None:
        """The transaction can only be aborted, and nothing of it is seen; the next one succeeds."""
        async with transactional(cluster) as producer:
            await producer.begin_transaction()
            await producer.send("t", b"before", partition=0)
            cluster.delete_acls(AclBindingFilter(resource_type=TOPIC, operation=WRITE))
            with pytest.raises(TopicAuthorizationException):
                await producer.send("t", b"denied", partition=0)
            with pytest.raises(KafkaError):
                await producer.commit_transaction()
            await producer.abort_transaction()
            cluster.create_acls(may(TOPIC, "t", WRITE))
            async with producer.transaction():
                await producer.send("t", b"after", partition=1)
        log = cluster.log("t")
        assert [record.value for record in log.records()] == [b"before"]
        assert log.open_transactions == set()
        assert len(log.aborted_transactions(0, log.log_end_offset)) == 1
        assert [record.value for record in cluster.log("t", 1).records()] == [b"after"]
        assert not cluster.log("t", 1).aborted_transactions(0, 9)

    async def test_the_transactional_id(self, cluster: EmbeddedCluster) -> None:
        """The producer is unusable; its transaction ends when its time is up, or when its successor begins."""
        async with transactional(cluster) as producer:
            await producer.begin_transaction()
            await producer.send("t", b"x", partition=0)
            cluster.delete_acls(AclBindingFilter(resource_type=TRANSACTIONAL_ID))
            with pytest.raises(TransactionalIdAuthorizationException):
                await producer.commit_transaction()
            with pytest.raises(KafkaError):
                await producer.begin_transaction()
        assert len(cluster.log("t").open_transactions) == 1
        cluster.create_acls(may(TRANSACTIONAL_ID, "x", WRITE))
        async with transactional(cluster) as successor:
            assert cluster.log("t").open_transactions == set()
            async with successor.transaction():
                await successor.send("t", b"y", partition=0)

    @pytest.mark.parametrize(
        ("revoked", "error"),
        [
            (AclBindingFilter(resource_type=GROUP), GroupAuthorizationException),
            (AclBindingFilter(resource_type=TOPIC, operation=READ), TopicAuthorizationException),
        ],
    )
    async def test_committing_offsets(
        self, cluster: EmbeddedCluster, revoked: AclBindingFilter, error: type[KafkaError]
    ) -> None:
        offsets = {TopicPartition("in", 0): OffsetAndMetadata(5)}
        group = ConsumerGroupMetadata("g")
        async with transactional(cluster) as producer:
            await producer.begin_transaction()
            await producer.send("t", b"x", partition=0)
            cluster.delete_acls(revoked)
            with pytest.raises(TransactionAbortableException) as failed:
                await producer.send_offsets_to_transaction(offsets, group)
            assert isinstance(failed.value.__cause__, error)
            await producer.abort_transaction()
            assert cluster.log("t").open_transactions == set()
            cluster.create_acls(may(GROUP, "g", READ), may(TOPIC, "in", READ))
            async with producer.transaction():
                await producer.send_offsets_to_transaction(offsets, group)
        assert cluster.committed_offsets("g") == {TopicPartition("in", 0): 5}


class TestIdempotentProducer:
    async def test_a_client_that_may_write_to_some_topic_gets_a_producer_id(self, cluster: EmbeddedCluster) -> None:
        cluster.create_acls(may(TOPIC, "t", WRITE))
        async with KafkaProducer(**alice(cluster)) as producer:
            assert (await producer.send("t", b"x", partition=0)).offset == 0
            with pytest.raises(TopicAuthorizationException):
                await producer.send("other", b"x")
        assert [topic.name for topic in cluster.topics] == ["t"]

    async def test_a_topic_is_created_for_clients_that_may_create_it(self, cluster: EmbeddedCluster) -> None:
        prefixed = {"pattern_type": PatternType.PREFIXED}
        cluster.create_acls(may(TOPIC, "new-", WRITE, **prefixed), may(TOPIC, "new-", AclOperation.CREATE, **prefixed))
        async with KafkaProducer(**alice(cluster)) as producer:
            assert (await producer.send("new-topic", b"x")).offset == 0

    async def test_one_partition_that_is_denied_harms_no_other(self, cluster: EmbeddedCluster) -> None:
        cluster.create_topic("u")
        cluster.create_acls(may(TOPIC, "*", WRITE), may(TOPIC, "u", WRITE, permission=AclPermissionType.DENY))
        cluster.create_acls(may(ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.IDEMPOTENT_WRITE))
        async with KafkaProducer(**alice(cluster)) as producer:
            for _ in range(3):
                kept, denied = producer.send("t", b"x", partition=0), producer.send("u", b"x")
                assert (await kept).offset >= 0
                with pytest.raises(TopicAuthorizationException):
                    await denied
        assert cluster.log("u").log_end_offset == 0


async def test_acls_are_kept_in_the_data_directory(tmp_path: Path) -> None:
    """Those that are there, and not those that were deleted."""
    wanted = [may(TOPIC, "a·b", READ, host="::1"), may(GROUP, "g", WRITE, permission=AclPermissionType.DENY)]
    gone = may(TOPIC, "gone", READ, pattern_type=PatternType.PREFIXED)
    async with EmbeddedCluster(configs=GUARDED, data_dir=tmp_path) as cluster:
        cluster.create_acls(*wanted, gone)
        assert cluster.delete_acls(AclBindingFilter(name="gone")) == [gone]
    async with EmbeddedCluster(configs=GUARDED, data_dir=tmp_path) as cluster:
        assert cluster.acls == wanted
        client = await RawClient.connect(cluster.bootstrap_servers)
        await log_in(client)
        request = MetadataRequest([MetadataRequestTopic(name="a·b")], allow_auto_topic_creation=False)
        assert (await client.request(request, 12)).topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        cluster.create_acls(may(TOPIC, "a·b", READ))
        assert (await client.request(request, 12)).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        await client.close()


class Late:
    """An authorizer of the user's own, which is ready when the test says so."""

    def __init__(self, listeners: Collection[str]) -> None:
        loop = asyncio.get_running_loop()
        self.ready: dict[str, asyncio.Future[None]] = {listener: loop.create_future() for listener in listeners}
        self.started: list[int] = []
        self.called = asyncio.Event()

    def start(self, node_id: int, listeners: Collection[str]) -> Mapping[str, Awaitable[object]]:
        self.started.append(node_id)
        self.called.set()
        return self.ready

    def authorize(self, client: Client, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        return client.principal == "User:ANONYMOUS" and name != "secret"

    def authorize_by_resource_type(self, client: Client, operation: AclOperation, kind: ResourceType) -> bool:
        return True


TWO = {
    "listeners": "EARLY://:0,LATE://:0",
    "listener.security.protocol.map": "EARLY:PLAINTEXT,LATE:PLAINTEXT",
    "inter.broker.listener.name": "EARLY",
}


async def answers(address: tuple[str, int]) -> bool:
    """Whether the node admits clients. The system completes connections before that."""
    client = await RawClient.connect(":".join(map(str, address)))
    try:
        async with asyncio.timeout(0.2):
            await client.request(MetadataRequest([]), 9)
        return True
    except TimeoutError:
        return False
    finally:
        await client.close()


class TestStart:
    async def test_a_listener_lets_clients_in_when_its_authorizer_is_ready(self) -> None:
        late = Late(["LATE"])
        cluster = EmbeddedCluster(configs=TWO, authorizer=late)
        starting = asyncio.create_task(cluster.start())
        await late.called.wait()
        assert await answers(cluster.listener(0, "EARLY"))
        assert not await answers(cluster.listener(0, "LATE"))
        assert not starting.done()
        late.ready["LATE"].set_result(None)
        await starting
        assert await answers(cluster.listener(0, "LATE"))
        client = await RawClient.connect(cluster.bootstrap_servers)
        names = [MetadataRequestTopic(name=name) for name in ("open", "secret")]
        answer = await client.request(MetadataRequest(names, allow_auto_topic_creation=False), 12)
        assert [topic.error_code for topic in answer.topics] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ]
        await client.close()
        await cluster.close()

    async def test_a_node_whose_authorizer_fails_does_not_start(self) -> None:
        late = Late(["EARLY", "LATE"])
        cluster = EmbeddedCluster(2, configs=TWO, authorizer=late)
        starting = asyncio.create_task(cluster.start())
        await late.called.wait()
        late.ready["LATE"].set_exception(ConfigException("no rules"))
        with pytest.raises(ConfigException, match="no rules"):
            await starting
        assert late.started == [0]
        with pytest.raises(OSError):
            await asyncio.open_connection(*cluster.listener(0, "EARLY"))
        assert cluster.bootstrap_servers == ""
        await cluster.close()

    async def test_a_start_that_waits_may_be_cancelled(self) -> None:
        late = Late(["LATE"])
        cluster = EmbeddedCluster(configs=TWO, authorizer=late)
        starting = asyncio.create_task(cluster.start())
        await late.called.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        with pytest.raises(OSError):
            await asyncio.open_connection(*cluster.listener(0, "LATE"))
        await cluster.close()

    async def test_a_listener_that_comes_meanwhile_waits_for_all(self) -> None:
        late = Late(["LATE"])
        cluster = EmbeddedCluster(configs=TWO, authorizer=late)
        starting = asyncio.create_task(cluster.start())
        await late.called.wait()
        protocols = TWO["listener.security.protocol.map"] + ",NEW:PLAINTEXT"
        cluster.alter_broker_configs(
            {"listeners": TWO["listeners"] + ",NEW://:0", "listener.security.protocol.map": protocols}, node_id=0
        )
        await cluster.listeners_changed()
        assert not await answers(cluster.listener(0, "NEW"))
        late.ready["LATE"].set_result(None)
        await starting
        assert await answers(cluster.listener(0, "NEW"))
        await cluster.close()

    def test_one_authorizer_is_enough(self) -> None:
        with pytest.raises(ValueError, match=r"authorizer\.class\.name"):
            EmbeddedCluster(configs=GUARDED, authorizer=Late.__new__(Late))

    def test_configs(self) -> None:
        with pytest.raises(ConfigException, match=r"authorizer\.class\.name.*StandardAuthorizer"):
            EmbeddedCluster(configs={"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"})
        with pytest.raises(ConfigException, match=r"super\.users"):
            EmbeddedCluster(configs={"super.users": "root"})


@pytest.mark.conformance
async def test_kafkas_own_tool_allows_and_denies(cluster: EmbeddedCluster, java_tools: Any) -> None:
    tools: KafkaTools = java_tools(cluster)
    root = KafkaTools(tools._libs, cluster.bootstrap_servers, configs=java_configs("PLAIN", "alice", ESCAPED))
    cluster.create_acls(may(ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALL))
    added = await root.acls("--add", "--allow-principal", "User:bob", "--producer", "--topic", "orders")
    assert "principal=User:bob" in added
    await root.acls(
        *("--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--operation", "Read"),
        *("--topic", "ord", "--resource-pattern-type", "prefixed"),
    )
    of_bob = {one.operation for one in cluster.acls if one.principal == "User:bob"}
    assert of_bob == {AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE}
    assert cluster.acls[-1] == may(
        TOPIC,
        "ord",
        READ,
        principal="User:*",
        host="10.0.0.1",
        pattern_type=PatternType.PREFIXED,
        permission=AclPermissionType.DENY,
    )
    listed = await root.acls("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "name=ord, patternType=PREFIXED" in listed
    assert "host=10.0.0.1, operation=READ, permissionType=DENY" in listed
    await root.acls("--remove", "--force", "--topic", "orders")
    assert [one.name for one in cluster.acls] == [CLUSTER_NAME, "ord"]


STANDING = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}


async def test_the_filters_of_a_request_are_compared_with_so_many_acls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delete_acls, "MOST_COMPARED", 4)
    async with EmbeddedCluster(configs=STANDING) as cluster:
        cluster.create_acls(*(may(ResourceType.TOPIC, name, AclOperation.READ) for name in "abc"))
        client = await RawClient.connect(cluster.bootstrap_servers)
        all_of_b = DeleteAclsFilter(ResourceType.TOPIC, "b", PatternType.ANY, None, None, 1, 1)
        elsewhere = DeleteAclsFilter(ResourceType.TOPIC, None, PatternType.ANY, None, "10.0.0.1", 1, 1)
        request = DeleteAclsRequest([*[all_of_b] * 4, elsewhere, elsewhere, elsewhere, all_of_b])
        results = (await client.request(request, 3)).filter_results
        await client.close()
        codes = [ErrorCode(result.error_code) for result in results]
        assert codes == [ErrorCode.NONE] * 6 + [ErrorCode.POLICY_VIOLATION] * 2
        assert [len(result.matching_acls) for result in results] == [1, *[0] * 7]
        assert [acl.name for acl in cluster.acls] == ["a", "c"]


class TestInSlices:
    """Between two slices, few questions are put to the authorizer, however many topics a request names."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The questions since the last slice began."""
        found: list[str] = []
        authorize = StandardAuthorizer.authorize

        def asking(authorizer: StandardAuthorizer, client: Client, operation: Any, kind: Any, name: str) -> bool:
            found.append(name)
            return authorize(authorizer, client, operation, kind, name)

        monkeypatch.setattr(StandardAuthorizer, "authorize", asking)
        return found

    @staticmethod
    def most(asked: list[str], steps: Any) -> int:
        """The most questions between two of these steps."""
        most = 0
        for _ in steps:
            most = max(most, len(asked))
            asked.clear()
        return max(most, len(asked))

    @pytest.mark.parametrize("every", [False, True])
    @pytest.mark.parametrize("allowed", [False, True])
    async def test_metadata(self, cluster: EmbeddedCluster, asked: list[str], allowed: bool, every: bool) -> None:
        names = [f"n{number}" for number in range(200)]
        for name in names:
            cluster.create_topic(name)
        if allowed:
            cluster.create_acls(may(TOPIC, "n", READ, pattern_type=PatternType.PREFIXED, principal="User:*"))
        context = cluster._context(0)
        wanted = None if every else [MetadataRequestTopic(name=name) for name in names]
        message = MetadataRequest(wanted, include_topic_authorized_operations=True)
        request = Request(RequestHeader(ApiKey.METADATA, 12, 1, None), Channel(), Channel())
        answers: list[Any] = []

        def steps() -> Iterator[None]:
            answers.append((yield from metadata.handle(context, request, message)))

        assert self.most(asked, steps()) <= 10
        operations = {topic.topic_authorized_operations for topic in answers[0].topics}
        assert operations == ({1 << READ | 1 << AclOperation.DESCRIBE} if allowed else set() if every else {-(2**31)})

    async def test_produce(self, cluster: EmbeddedCluster, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        data = [TopicProduceData(f"n{number}", partition_data=[]) for number in range(200)]
        message = ProduceRequest(acks=1, topic_data=data)
        request = Request(RequestHeader(ApiKey.PRODUCE, 9, 1, None), Channel(), Channel())
        works: list[Any] = []
        monkeypatch.setattr(LongWork, "run", lambda work, request, steps, **more: works.append(steps))
        assert produce.handle(cluster._context(0), request, message) is None
        assert self.most(asked, works.pop()) <= 1
