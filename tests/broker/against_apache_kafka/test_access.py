"""Permissions on the embedded broker and on Apache Kafka, both with Kafka's StandardAuthorizer: request by request,
as a user to whom ACLs are granted bit by bit (see ``kafka_comparison.py``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from aioproducer.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.authorization.authorizer import STANDARD
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData, OpData
from aioproducer.protocol.messages.alter_configs import AlterConfigsRequest
from aioproducer.protocol.messages.alter_configs import AlterConfigsResource as ReplacedConfigs
from aioproducer.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from aioproducer.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aioproducer.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aioproducer.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aioproducer.protocol.messages.delete_groups import DeleteGroupsRequest
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from aioproducer.protocol.messages.describe_acls import DescribeAclsRequest
from aioproducer.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, EntityData
from aioproducer.protocol.messages.describe_cluster import DescribeClusterRequest
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.describe_groups import DescribeGroupsRequest
from aioproducer.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from aioproducer.protocol.messages.describe_transactions import DescribeTransactionsRequest
from aioproducer.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from aioproducer.protocol.messages.end_txn import EndTxnRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest
from aioproducer.protocol.messages.heartbeat import HeartbeatRequest
from aioproducer.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from aioproducer.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from aioproducer.protocol.messages.list_groups import ListGroupsRequest
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.protocol.messages.list_transactions import ListTransactionsRequest
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aioproducer.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from aioproducer.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aioproducer.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.messages.sync_group import SyncGroupRequest
from aioproducer.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from aioproducer.protocol.schema import Request
from aioproducer.security.jaas import PLAIN_LOGIN_MODULE
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient
from tests.broker.raw_clients.sasl import log_in

from .kafka_comparison import GROUP, NOT_YET, TRANSACTION, ComparedBroker

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]

PASSWORDS = {"alice": "alice's", "bob": "bob's"}
USERS = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
CONFIGS = {
    "authorizer.class.name": STANDARD,
    "super.users": "User:ANONYMOUS;User:root",
    "listener.name.users.plain.sasl.jaas.config": f"{PLAIN_LOGIN_MODULE} required {USERS};",
    "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
}


class Both:
    """A super user and alice, on one broker."""

    def __init__(self, root: ComparedBroker, user: ComparedBroker) -> None:
        self.root, self.user = root, user

    async def allow(self, *acls: AclCreation) -> list[int]:
        answer = await self.root.client.request(CreateAclsRequest([*acls]), 3)
        return [one.error_code for one in answer.results]

    async def deny_all(self) -> int:
        """Deletes all ACLs; how many those were."""
        answer = await self.root.client.request(DeleteAclsRequest([filter_of()]), 3)
        return len(answer.filter_results[0].matching_acls)

    async def settled(self) -> None:
        """Returns when all changes before this are in force. Kafka's broker hears of them in its own time, in order."""
        request = MetadataRequest([MetadataRequestTopic(name="mark")], allow_auto_topic_creation=False)
        await self.root.client.request(DeleteAclsRequest([filter_of("mark")]), 3)
        for permission, wanted in (
            (AclPermissionType.ALLOW, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (AclPermissionType.DENY, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ):
            await self.allow(acl(ResourceType.TOPIC, "mark", AclOperation.DESCRIBE, permission=permission))
            while (await self.user.client.request(request, 12)).topics[0].error_code != wanted:  # noqa: ASYNC110 - there is no event to await
                await asyncio.sleep(0.01)


def acl(
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    *,
    principal: str = "User:alice",
    host: str = "*",
    permission: AclPermissionType = AclPermissionType.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
) -> AclCreation:
    return AclCreation(kind, name, pattern, principal, host, operation, permission)


def filter_of(name: str | None = None) -> DeleteAclsFilter:
    return DeleteAclsFilter(1, name, 1, None, None, 1, 1)


@pytest.fixture(scope="module")
def guarded_kafka() -> Iterator[ApacheKafka]:
    with running_kafka("4.3.1", listeners={"USERS": "SASL_PLAINTEXT"}, configs=CONFIGS) as kafka:
        yield kafka


@pytest.fixture
async def both(guarded_kafka: ApacheKafka) -> AsyncIterator[tuple[Both, Both]]:
    configs = {
        **CONFIGS,
        "listeners": "PLAINTEXT://:0,USERS://:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT",
    }
    async with EmbeddedCluster(old_nodes=[0], configs=configs) as cluster:
        pairs = []
        for root, users in (
            (cluster.bootstrap_servers, cluster.bootstrap_servers_of("USERS")),
            (guarded_kafka.bootstrap_servers, guarded_kafka.bootstrap_servers_of("USERS")),
        ):
            user = await RawClient.connect(users)
            await log_in(user, "alice", PASSWORDS["alice"])
            pairs.append(Both(ComparedBroker(await RawClient.connect(root)), ComparedBroker(user)))
        for one in pairs:
            await one.deny_all()
        yield pairs[0], pairs[1]
        for one in pairs:
            await one.root.client.close()
            await one.user.client.close()


TOPIC, CLUSTER, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
OF_GROUP = ResourceType.GROUP
Op = AclOperation
DENY = AclPermissionType.DENY
PREFIXED = PatternType.PREFIXED
THE_CLUSTER = "kafka-cluster"
EVERYTHING = [acl(kind, "*", Op.ALL) for kind in (TOPIC, OF_GROUP, TRANSACTIONAL_ID)]

GRANTS: dict[str, list[AclCreation]] = {
    "nothing": [],
    "describe topic": [acl(TOPIC, "there", Op.DESCRIBE)],
    "read topic": [acl(TOPIC, "there", Op.READ)],
    "write topic": [acl(TOPIC, "there", Op.WRITE)],
    "create, delete, alter topics": [acl(TOPIC, "*", one) for one in (Op.CREATE, Op.DELETE, Op.ALTER)],
    "configs of topics": [acl(TOPIC, "there", Op.ALTER_CONFIGS)],
    "prefix of topics": [acl(TOPIC, "th", Op.ALL, pattern=PREFIXED)],
    "all but reading": [acl(TOPIC, "*", Op.ALL), acl(TOPIC, "there", Op.READ, permission=DENY)],
    "denied by prefix": [acl(TOPIC, "*", Op.ALL), acl(TOPIC, "the", Op.ALL, permission=DENY, pattern=PREFIXED)],
    "of everybody here": [acl(TOPIC, "there", Op.ALL, principal="User:*", host="127.0.0.1")],
    "of somebody else, elsewhere": [
        acl(TOPIC, "there", Op.ALL, principal="User:bob"),
        acl(TOPIC, "there", Op.ALL, host="10.1.2.3"),
    ],
    "describe group": [acl(OF_GROUP, "g", Op.DESCRIBE)],
    "read group": [acl(OF_GROUP, "g", Op.READ)],
    "delete group": [acl(OF_GROUP, "g", Op.DELETE), acl(TOPIC, "there", Op.READ)],
    "transactions": [acl(TRANSACTIONAL_ID, "t", Op.WRITE)],
    "transactions and topics": [acl(TRANSACTIONAL_ID, "t", Op.WRITE), acl(TOPIC, "*", Op.WRITE)],
    "offsets in transactions": [
        acl(TRANSACTIONAL_ID, "t", Op.WRITE),
        acl(OF_GROUP, "g", Op.READ),
        acl(TOPIC, "there", Op.READ),
    ],
    "idempotent write": [acl(CLUSTER, THE_CLUSTER, Op.IDEMPOTENT_WRITE)],
    "describe cluster": [acl(CLUSTER, THE_CLUSTER, Op.DESCRIBE)],
    "alter cluster": [acl(CLUSTER, THE_CLUSTER, Op.ALTER)],
    "configs of the cluster": [acl(CLUSTER, THE_CLUSTER, Op.ALTER_CONFIGS)],
    "create and delete": [acl(CLUSTER, THE_CLUSTER, Op.CREATE), acl(CLUSTER, THE_CLUSTER, Op.DELETE)],
    "everything": EVERYTHING,
}


def batch(*, transactional: bool = False) -> bytes:
    header: dict[str, Any] = {"producer_id": 10**6, "producer_epoch": 0, "base_sequence": 0} if transactional else {}
    return make_batch(b"x", transactional=transactional, **header)


def produce(*batches: bytes, transactional_id: str | None = None) -> ProduceRequest:
    topics = [
        TopicProduceData(name, partition_data=[PartitionProduceData(0, one)])
        for name, one in zip(("there", "missing"), batches, strict=False)
    ]
    return ProduceRequest(transactional_id, -1, 5000, topics)


def requests_of(node: int) -> list[tuple[str, Request, int]]:
    """Requests of which none changes what another one answers."""
    both = ["there", "missing"]
    identity = 10**6, 0
    commit = [OffsetCommitRequestTopic(name, partitions=[OffsetCommitRequestPartition(0, 1)]) for name in both]
    wanted = [OffsetFetchRequestTopics(name, partition_indexes=[0]) for name in both]
    in_transaction = [
        TxnOffsetCommitRequestTopic(name, [TxnOffsetCommitRequestPartition(0, 1, -1, "")]) for name in both
    ]
    configs = [(2, "there"), (2, "missing"), (4, str(node))]
    names = [MetadataRequestTopic(name=name) for name in both]
    quota = EntryData([EntityData("user", "u")], [OpData("producer_byte_rate", 1e6, False)])
    return [
        ("metadata", MetadataRequest(names, allow_auto_topic_creation=False), 12),
        ("all metadata", MetadataRequest(None), 12),
        (
            "operations",
            MetadataRequest(
                names,
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=True,
                include_topic_authorized_operations=True,
            ),
            8,
        ),
        ("cluster", DescribeClusterRequest(include_cluster_authorized_operations=True), 1),
        ("produce", produce(batch(), batch()), 9),
        ("produce in a transaction", produce(batch(transactional=True), transactional_id="t"), 9),
        ("produce in another transaction", produce(batch(transactional=True), transactional_id="u"), 9),
        ("produce in no transaction", produce(batch(transactional=True)), 9),
        (
            "fetch",
            FetchRequest(
                max_wait_ms=0,
                topics=[FetchTopic(name, partitions=[FetchPartition(0, partition_max_bytes=1)]) for name in both],
            ),
            12,
        ),
        (
            "list offsets",
            ListOffsetsRequest(-1, 0, [ListOffsetsTopic(name, [ListOffsetsPartition(0, -1, -2)]) for name in both]),
            5,
        ),
        (
            "end of an epoch",
            OffsetForLeaderEpochRequest(
                -1,
                [
                    OffsetForLeaderTopic(name, [OffsetForLeaderPartition(0, current_leader_epoch=-1, leader_epoch=0)])
                    for name in both
                ],
            ),
            4,
        ),
        (
            "delete records",
            DeleteRecordsRequest([DeleteRecordsTopic(name, [DeleteRecordsPartition(0, 0)]) for name in both], 5000),
            2,
        ),
        (
            "create topics",
            CreateTopicsRequest([CreatableTopic("there", 1, 1), CreatableTopic("that", 1, 1)], 5000, True),
            7,
        ),
        ("delete topics", DeleteTopicsRequest([DeleteTopicState("missing")], timeout_ms=5000), 6),
        (
            "create partitions",
            CreatePartitionsRequest([CreatePartitionsTopic(name, 5, None) for name in both], 5000, True),
            3,
        ),
        ("describe configs", DescribeConfigsRequest([DescribeConfigsResource(*one, []) for one in configs]), 4),
        (
            "alter configs",
            IncrementalAlterConfigsRequest(
                [
                    AlterConfigsResource(kind, name, [AlterableConfig("min.insync.replicas", 1, None)])
                    for kind, name in configs[:2]
                ],
                True,
            ),
            1,
        ),
        ("replace configs", AlterConfigsRequest([ReplacedConfigs(*one, []) for one in configs], True), 2),
        ("group coordinator", FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["g", "h"]), 4),
        ("transaction coordinator", FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["t", "u"]), 4),
        ("join", JoinGroupRequest("g", 10_000, 10_000, "m", None, "p", [JoinGroupRequestProtocol("r", b"")]), 7),
        ("sync", SyncGroupRequest("g", 1, "m", None, "p", "r", []), 5),
        ("heartbeat", HeartbeatRequest("g", 1, "m"), 4),
        ("leave", LeaveGroupRequest("g", members=[MemberIdentity("m")]), 5),
        ("describe groups", DescribeGroupsRequest(["g", "h"], True), 6),
        ("list groups", ListGroupsRequest(), 4),
        ("delete groups", DeleteGroupsRequest(["nobody"]), 2),
        ("commit", OffsetCommitRequest("g", -1, "", topics=commit), 8),
        ("commit elsewhere", OffsetCommitRequest("h", -1, "", topics=commit), 8),
        ("committed", OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=wanted)]), 9),
        ("all committed", OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)]), 9),
        ("committed, as long ago", OffsetFetchRequest("h", topics=[]), 2),
        (
            "delete offsets",
            OffsetDeleteRequest(
                "g", [OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(7)]) for name in both]
            ),
            0,
        ),
        ("producer id", InitProducerIdRequest(None, 1000), 4),
        ("transactional id", InitProducerIdRequest("t", 0), 4),
        ("another transactional id", InitProducerIdRequest("u", 0), 4),
        (
            "add partitions",
            AddPartitionsToTxnRequest([], "t", *identity, [AddPartitionsToTxnTopic(name, [0]) for name in both]),
            3,
        ),
        (
            "add existing partitions",
            AddPartitionsToTxnRequest([], "t", *identity, [AddPartitionsToTxnTopic("there", [0])]),
            3,
        ),
        ("add a group", AddOffsetsToTxnRequest("t", *identity, "g"), 3),
        ("add another group", AddOffsetsToTxnRequest("t", *identity, "h"), 3),
        ("commit in a transaction", TxnOffsetCommitRequest("t", "g", *identity, topics=in_transaction), 3),
        ("end", EndTxnRequest("t", *identity, True), 3),
        ("end another", EndTxnRequest("u", *identity, True), 3),
        ("describe transactions", DescribeTransactionsRequest(["t", "u"]), 0),
        ("list transactions", ListTransactionsRequest(), 1),
        ("describe producers", DescribeProducersRequest([TopicRequest(name, [0]) for name in both]), 0),
        ("describe quotas", DescribeClientQuotasRequest([], False), 1),
        ("alter quotas", AlterClientQuotasRequest([quota], True), 1),
        ("describe credentials", DescribeUserScramCredentialsRequest([]), 0),
        ("alter credentials", AlterUserScramCredentialsRequest([ScramCredentialDeletion("nobody", 1)]), 0),
        ("describe acls", DescribeAclsRequest(5, "nothing", 3, None, None, 1, 1), 3),
        ("create acls", CreateAclsRequest([acl(TOPIC, "", Op.READ)]), 3),
        ("delete acls", DeleteAclsRequest([DeleteAclsFilter(5, "nothing", 3, None, None, 1, 1)]), 3),
    ]


def codes(response: Any) -> Any:
    """All error codes of a response, with the names of its rows and the allowed operations."""
    if isinstance(response, list):
        return sorted(map(codes, response), key=repr)
    if not hasattr(response, "__dataclass_fields__"):
        return None
    found: dict[str, Any] = {}
    for field in response.__dataclass_fields__:
        value = getattr(response, field)
        if field == "configs":  # the two have not the same ones
            found[field] = bool(value)
        elif isinstance(value, list):
            found[field] = codes(value) if value and hasattr(value[0], "__dataclass_fields__") else []
        elif field.endswith("error_code"):
            found[field] = ErrorCode(value).name
        elif field.endswith("operations") or field in ("name", "resource_name", "group_id", "transactional_id", "key"):
            found[field] = "a node" if field == "resource_name" and value.isdigit() else value
        elif hasattr(value, "__dataclass_fields__"):
            found[field] = codes(value)
    return found


def unsettled(answer: Any) -> bool:
    if isinstance(answer, list):
        return any(map(unsettled, answer))
    return isinstance(answer, dict) and any(
        value in NOT_YET if isinstance(value, str) else unsettled(value) for value in answer.values()
    )


async def answered(client: RawClient, request: Request, version: int) -> Any:
    """The answer of a coordinator once it is ready."""
    while unsettled(answer := codes(await client.request(request, version))):  # noqa: ASYNC110 - there is no event to await
        await asyncio.sleep(0.01)
    return answer


@pytest.mark.parametrize("granted", GRANTS)
async def test_the_same_requests_are_allowed_with_each_grant(both: tuple[Both, Both], granted: str) -> None:
    async def case(one: Both) -> list[Any]:
        for kind, key in ((GROUP, "g"), (TRANSACTION, "t")):
            await one.root.find_coordinator(key, kind)
        known = (await one.root.client.request(MetadataRequest(None), 12)).topics
        if all(topic.name != "there" for topic in known):
            await one.root.create("there")
            commit = [OffsetCommitRequestTopic("there", partitions=[OffsetCommitRequestPartition(0, 1)])]
            await answered(one.root.client, OffsetCommitRequest("g", -1, "", topics=commit), 8)
        (node,) = (await one.root.client.request(MetadataRequest([]), 12)).brokers
        if GRANTS[granted]:
            assert set(await one.allow(*GRANTS[granted])) == {0}
        await one.settled()
        answers = [
            (name, await answered(one.user.client, request, version))
            for name, request, version in requests_of(node.node_id)
        ]
        for name, topics in answers:
            if name == "all metadata":  # ours has no internal topics
                topics["topics"] = [one for one in topics["topics"] or [] if not one["name"].startswith("__")]
        return answers

    await same_of(both, case)


async def test_acls(both: tuple[Both, Both]) -> None:
    """What may be created, and how what there is gets found and deleted. For a type, an operation or a permission that
    no ACL can have Kafka closes the connection, or answers UNKNOWN_SERVER_ERROR; ours answers INVALID_REQUEST."""

    async def case(one: Both) -> list[Any]:
        client = one.root.client
        answers: list[Any] = []
        deny = AclPermissionType.DENY
        for creation in (
            acl(TOPIC, "orders", Op.READ),
            acl(TOPIC, "orders", Op.READ),
            acl(TOPIC, "orders", Op.WRITE, host="10.0.0.1", permission=deny),
            acl(TOPIC, "ord", Op.ALL, pattern=PREFIXED, principal="User:*"),
            acl(TOPIC, "*", Op.DESCRIBE),
            acl(TOPIC, "*", Op.DESCRIBE, pattern=PREFIXED),
            acl(OF_GROUP, "orders", Op.READ, principal="Group:CN=a,O=b"),
            acl(CLUSTER, THE_CLUSTER, Op.CREATE),
            acl(CLUSTER, "cluster", Op.CREATE),
            acl(CLUSTER, "kafka", Op.CREATE, pattern=PREFIXED),
            acl(CLUSTER, "*", Op.CREATE),
            acl(TRANSACTIONAL_ID, "t", Op.WRITE),
            acl(ResourceType.DELEGATION_TOKEN, "d", Op.DESCRIBE),
            acl(ResourceType.USER, "User:u", Op.CREATE_TOKENS),
            acl(TOPIC, "", Op.READ),
            acl(TOPIC, "a b/c", Op.READ),
            acl(TOPIC, "orders", Op.CLUSTER_ACTION),
            acl(TOPIC, "orders", Op.READ, host=""),
            acl(TOPIC, "orders", Op.READ, host="localhost"),
            *(acl(TOPIC, "orders", Op.READ, principal=who) for who in ("", "alice", "User:", ":alice", "User:a:b")),
            AclCreation(2, "orders", 3, "User:a", "*", 15, 3),
        ):
            for version in (1, 3):
                answer = await client.request(CreateAclsRequest([creation]), version)
                answers.append((creation, version, codes(answer)))
        await one.settled()

        async def found(*wanted: Any, version: int = 3) -> Any:
            answer = await client.request(DescribeAclsRequest(*wanted), version)
            return ErrorCode(answer.error_code).name, sorted(
                (of.resource_type, of.pattern_type, of.resource_name, (*of_one(each),))
                for of in answer.resources
                for each in of.acls
                if of.resource_name != "mark"
            )

        def of_one(each: Any) -> tuple[Any, ...]:
            return each.principal, each.host, each.operation, each.permission_type

        filters: list[tuple[Any, ...]] = [
            (1, None, 1, None, None, 1, 1),
            *((kind, None, 1, None, None, 1, 1) for kind in (2, 3, 4, 7)),
            *((2, "orders", pattern, None, None, 1, 1) for pattern in (1, 2, 3, 4)),
            *((2, "*", pattern, None, None, 1, 1) for pattern in (1, 2, 3, 4)),
            *((2, "or", pattern, None, None, 1, 1) for pattern in (1, 2, 4)),
            (1, "orders", 2, None, None, 1, 1),
            (1, "", 1, None, None, 1, 1),
            (1, None, 2, "User:alice", None, 1, 1),
            (1, None, 1, "alice", None, 1, 1),
            (1, None, 1, None, "10.0.0.1", 1, 1),
            (1, None, 1, None, "*", 2, 1),
            (1, None, 1, None, None, 3, 2),
            (1, None, 1, None, None, 1, 2),
        ]
        answers += [(wanted, await found(*wanted)) for wanted in filters]
        answers.append(await found(*filters[0], version=1))
        for several in (
            [filters[1], (6, None, 1, None, None, 1, 1)],
            [(2, "orders", 2, None, None, 3, 3), (3, None, 1, None, None, 1, 1)],
            [],
            [(3, None, 1, None, None, 1, 1)],
        ):
            answer = await client.request(DeleteAclsRequest([DeleteAclsFilter(*wanted) for wanted in several]), 2)
            answers.append(
                [
                    (
                        ErrorCode(result.error_code).name,
                        sorted(
                            (each.resource_type, each.pattern_type, each.resource_name, *of_one(each))
                            for each in result.matching_acls
                            if each.resource_name != "mark"
                        ),
                    )
                    for result in answer.filter_results
                ]
            )
            await one.settled()
            answers.append(await found(*filters[0]))
        return answers

    await same_of(both, case)


async def same_of(both: tuple[Both, Both], case: Callable[[Both], Awaitable[list[Any]]]) -> None:
    ours, theirs = both
    async with asyncio.timeout(60):
        answers, expected = await case(ours), await case(theirs)
    for mine, other in zip(answers, expected, strict=True):
        assert mine == other, (mine, other)
