"""Requests of admin clients, answered by the embedded broker and by Apache Kafka."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntryData, OpData
from aioproducer.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from aioproducer.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from aioproducer.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from aioproducer.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from aioproducer.protocol.messages.describe_client_quotas import EntityData as Named
from aioproducer.protocol.messages.describe_cluster import DescribeClusterRequest
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from aioproducer.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest
from aioproducer.protocol.messages.incremental_alter_configs import AlterableConfig as IncrementalConfig
from aioproducer.protocol.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from aioproducer.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch import read_batches
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import RecordWriter
from tests.broker.raw_clients.batches import NOW_MS, make_batch

from .kafka_comparison import ComparedBroker, same

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

EXACT, DEFAULT, ANY = 0, 1, 2
Entity = list[tuple[str, str | None]]


def name_of(code: int) -> str:
    return ErrorCode(code).name


async def node_id(broker: ComparedBroker) -> int:
    (node,) = (await broker.client.request(MetadataRequest(topics=[]), 12)).brokers
    return int(node.node_id)


async def test_create_partitions(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("grows", 2)
        node = await node_id(broker)

        async def create_partitions(
            *topics: CreatePartitionsTopic, validate_only: bool = False, version: int = 3
        ) -> Any:
            request = CreatePartitionsRequest([*topics], 5000, validate_only)
            answer = await broker.client.request(request, version)
            return sorted((one.name, name_of(one.error_code)) for one in answer.results)

        def wanted(count: int, *assigned: list[int], name: str = "grows") -> CreatePartitionsTopic:
            places = [CreatePartitionsAssignment(one) for one in assigned] or None
            return CreatePartitionsTopic(name, count, places)

        async def partitions() -> int:
            response = await broker.client.request(MetadataRequest([MetadataRequestTopic(name="grows")]), 12)
            return len(response.topics[0].partitions)

        answers: list[Any] = [
            await create_partitions(wanted(2)),
            await create_partitions(wanted(1)),
            await create_partitions(wanted(0)),
            await create_partitions(wanted(-1)),
            await create_partitions(wanted(3), validate_only=True),
            await create_partitions(wanted(3, [node], [node])),
            await create_partitions(wanted(4, [node])),
            await create_partitions(wanted(3, [node + 1])),
            await create_partitions(wanted(3, [node, node])),
            await create_partitions(wanted(3, [])),
            await create_partitions(CreatePartitionsTopic("grows", 3, [])),
            await create_partitions(wanted(3), wanted(4)),
            await create_partitions(wanted(3, name="not-there"), wanted(3, name="no/name"), wanted(3, name="")),
            await create_partitions(),
            await partitions(),
        ]
        for version, count in ((0, 3), (1, 4), (2, 5), (3, 6)):
            answers.append(await create_partitions(wanted(count), version=version))
            while await partitions() < count:  # noqa: ASYNC110 - there is no event to await
                await asyncio.sleep(0.01)
        answers.append(await partitions())
        return answers

    await same(pair, case)


async def test_delete_records(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        await broker.create("shrinks")
        for _ in range(3):
            await broker.produce("shrinks", make_batch(b"a", b"b"))

        async def delete_records(offset: int, index: int = 0, topic: str = "shrinks", version: int = 2) -> Any:
            wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])
            answer = await broker.client.request(DeleteRecordsRequest([wanted], 5000), version)
            (one,) = answer.topics[0].partitions
            return answer.topics[0].name, one.partition_index, one.low_watermark, name_of(one.error_code)

        answers: list[Any] = []
        for version, offset in ((0, 0), (1, 1), (2, 3), (2, 2), (2, 7), (2, -2), (2, -3)):
            answers.append((offset, await delete_records(offset, version=version)))
            answers.append([await broker.list_offset("shrinks", time) for time in (-2, -1, -4, 0)])
            answers.append([await broker.fetch("shrinks", at) for at in (0, 2, 3, 4)])
        answers += [
            (more, await delete_records(0, **more))
            for more in ({"index": 1}, {"index": -1}, {"topic": "not-there"}, {"topic": ""})
        ]
        answers.append(await delete_records(-1))
        answers.append([await broker.list_offset("shrinks", time) for time in (-2, -1, 0)])
        answers.append([await broker.fetch("shrinks", at) for at in (5, 6)])
        answers.append(await broker.produce("shrinks", make_batch(b"a")))
        return answers

    await same(pair, case)


async def test_cleanup_policies(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        writer = RecordWriter()
        writer.append(0, 0, b"key", b"value", None)
        body = writer.freeze()
        keyed = encode_batch_header(body, count=1, base_timestamp=NOW_MS, max_timestamp=NOW_MS) + body
        answers: list[Any] = []
        for number, policy in enumerate(("compact", "delete", "compact,delete")):
            topic = f"cleaned-{number}"
            await broker.create(topic, cleanup_policy=policy)
            answers.append([policy, await broker.produce(topic, make_batch(b"a")), await broker.produce(topic, keyed)])
            wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 0)])
            answer = await broker.client.request(DeleteRecordsRequest([wanted], 5000), 2)
            answers.append(name_of(answer.topics[0].partitions[0].error_code))
        return answers

    await same(pair, case)


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd", "producer"])
async def test_the_codec_of_a_topic(pair: tuple[ComparedBroker, ComparedBroker], codec: str) -> None:
    """What is appended and what it is read as; that the batch is of this codec is looked at below the records."""
    topic = f"packed-{codec}"

    async def case(broker: ComparedBroker) -> Any:
        await broker.create(topic, compression_type=codec, max_message_bytes="500")
        answers: list[Any] = [
            (str(source), await broker.produce(topic, make_batch(*values, codec=source)))
            for source in CompressionType
            for values in ((b"a", b"b"), (b"x" * 5000,), (bytes(range(256)) * 2,))
        ]
        partition = FetchPartition(0, fetch_offset=0, partition_max_bytes=2**20)
        request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic, partitions=[partition])])
        (answer,) = (await broker.client.request(request, 12)).responses[0].partitions
        answers += [
            (batch.base_offset, str(batch.codec), batch.count, batch.max_timestamp, [*batch.records()])
            for batch in read_batches(answer.records, allow_partial=True)
        ]
        return answers

    await same(pair, case)


async def test_topics_by_name_and_id(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        first, second = await broker.create("by-both"), await broker.create("by-id")
        answers: list[Any] = []
        for states in (
            [DeleteTopicState("by-both", first), DeleteTopicState("by-both")],
            [DeleteTopicState("by-both"), DeleteTopicState("by-both")],
            [DeleteTopicState(None, second), DeleteTopicState("by-id")],
            [DeleteTopicState(None, second), DeleteTopicState(None, second)],
            [DeleteTopicState(None)],
            [DeleteTopicState("")],
            [DeleteTopicState("no/name")],
            [],
            [DeleteTopicState(None, second), DeleteTopicState("not-there")],
        ):
            answer = await broker.client.request(DeleteTopicsRequest(states, timeout_ms=5000), 6)
            answers.append(
                sorted(
                    (one.name or "", one.topic_id in (first, second), name_of(one.error_code))
                    for one in answer.responses
                )
            )
        await broker.create("by-name")
        for version in range(1, 6):
            request = DeleteTopicsRequest(topic_names=["by-name", "by-name", "not-there"], timeout_ms=5000)
            answer = await broker.client.request(request, version)
            answers.append((version, sorted((one.name, name_of(one.error_code)) for one in answer.responses)))
        return answers

    await same(pair, case)


@pytest.mark.parametrize("version", range(2, 8))
async def test_the_answer_about_a_new_topic(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    async def case(broker: ComparedBroker) -> Any:
        answers: list[Any] = []
        for validate_only in (True, False):
            configs = [CreatableTopicConfig("retention.ms", "5"), CreatableTopicConfig("cleanup.policy", "compact")]
            request = CreateTopicsRequest(
                [CreatableTopic(f"new-{version}", 2, 1, configs=configs)], validate_only=validate_only
            )
            answer = await broker.client.request(request, version)
            (one,) = answer.topics
            known = {config.name: config for config in one.configs or []}
            answers.append(
                (
                    validate_only,
                    name_of(one.error_code),
                    one.num_partitions,
                    one.replication_factor,
                    one.topic_config_error_code,
                    one.topic_id.int > 0,
                    [known.get(name) for name in ("retention.ms", "cleanup.policy", "segment.bytes")],
                )
            )
        again = await broker.client.request(CreateTopicsRequest([CreatableTopic(f"new-{version}", 2, 1)]), version)
        (one,) = again.topics
        answers.append((name_of(one.error_code), bool(one.error_message), one.num_partitions, one.configs))
        return answers

    await same(pair, case)


@pytest.mark.parametrize("version", range(3))
async def test_cluster(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    async def case(broker: ComparedBroker) -> Any:
        answers: list[Any] = []
        for kind in (1, 2, 0, 7) if version else (1,):
            request = DescribeClusterRequest(True, kind, include_fenced_brokers=version == 2)
            answer = await broker.client.request(request, version)
            answers.append(
                (
                    name_of(answer.error_code),
                    bool(answer.error_message),
                    answer.endpoint_type,
                    len(answer.cluster_id),
                    answer.controller_id == -1,
                    [(one.host, one.rack, one.is_fenced) for one in answer.brokers],
                    answer.cluster_authorized_operations,
                )
            )
        return answers

    await same(pair, case)


@pytest.mark.parametrize("version", range(7))
async def test_coordinators(pair: tuple[ComparedBroker, ComparedBroker], version: int) -> None:
    async def case(broker: ComparedBroker) -> Any:
        answers: list[Any] = []
        keys = ["a", "", "b"] if version >= 4 else []
        for kind in (0, 1, 2, 7) if version else (0,):
            find = FindCoordinatorRequest("" if keys else "a", kind, keys)
            answer = await broker.settled(
                find,
                version,
                lambda response: max([response.error_code, *(one.error_code for one in response.coordinators)]),
            )
            answers.append((kind, name_of(answer.error_code), answer.node_id == -1))
            answers.append([(one.key, name_of(one.error_code), one.node_id == -1) for one in answer.coordinators])
        return answers

    await same(pair, case)


async def test_configs_all_at_once(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    """AlterConfigs, which replaces all configs of a resource."""

    async def case(broker: ComparedBroker) -> Any:
        await broker.create("replaced", retention_ms="5", max_message_bytes="6000")
        answers: list[Any] = []

        async def own(topic: str) -> Any:
            answer = await broker.client.request(DescribeConfigsRequest([DescribeConfigsResource(2, topic)]), 4)
            return sorted((one.name, one.value) for one in answer.results[0].configs if one.config_source == 1)

        for kind, name, configs, validate_only in (
            (2, "replaced", {"retention.ms": "7"}, True),
            (2, "replaced", {"retention.ms": "abc"}, False),
            (2, "replaced", {"retention.ms": None}, False),
            (2, "replaced", {"no.such": "1"}, False),
            (2, "replaced", {"cleanup.policy": "compact"}, False),
            (2, "replaced", {}, False),
            (2, "not-there", {"retention.ms": "7"}, False),
            (2, "no/name", {"retention.ms": "7"}, False),
            (2, "", {}, False),
            (8, "x", {"a": "b"}, False),
            (77, "x", {}, False),
            (4, "x", {"log.retention.bytes": "5"}, False),
        ):
            for version in (1, 2):
                named = [AlterableConfig(*one) for one in configs.items()]
                before = await own("replaced")
                answer = await broker.client.request(
                    AlterConfigsRequest([AlterConfigsResource(kind, name, named)], validate_only), version
                )
                (one,) = answer.responses
                answers.append((kind, name, one.resource_type, one.resource_name, name_of(one.error_code)))
                wanted = sorted(configs.items())
                while name == "replaced" and not one.error_code and not validate_only and await own(name) != wanted:  # noqa: ASYNC110 - there is no event to await
                    await asyncio.sleep(0.01)
                answers.append((bool(before), await own("replaced")))
        for kind in (0, 1, 2, 3, 4, 8, 77):
            answer = await broker.client.request(DescribeConfigsRequest([DescribeConfigsResource(kind, "x")]), 4)
            answers.append(
                (kind, [(name_of(one.error_code), one.resource_type, one.configs) for one in answer.results])
            )
        return answers

    await same(pair, case)


async def test_configs_of_groups_and_client_metrics(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    group, metrics, logger = 32, 16, 8

    async def case(broker: ComparedBroker) -> Any:
        node = str(await node_id(broker))
        answers: list[Any] = []

        async def own(kind: int, name: str) -> Any:
            answer = await broker.client.request(DescribeConfigsRequest([DescribeConfigsResource(kind, name)]), 4)
            (one,) = answer.results
            configs = sorted((config.name, config.value) for config in one.configs if config.config_source in (7, 8))
            return name_of(one.error_code), configs, len(one.configs) if kind != logger else None

        for kind, name, config, operation, value in (
            (group, "g", "consumer.session.timeout.ms", 0, "50000"),
            (group, "g", "consumer.session.timeout.ms", 0, "1"),
            (group, "g", "consumer.session.timeout.ms", 0, "x"),
            (group, "g", "consumer.session.timeout.ms", 2, "1"),
            (group, "g", "consumer.heartbeat.interval.ms", 0, "60000"),
            (group, "g", "streams.num.standby.replicas", 0, "1"),
            (group, "g", "no.such", 0, "1"),
            (group, "", "consumer.session.timeout.ms", 0, "50000"),
            (metrics, "m", "interval.ms", 0, "1000"),
            (metrics, "m", "interval.ms", 0, "1"),
            (metrics, "m", "interval.ms", 0, "x"),
            (metrics, "m", "metrics", 0, "a,b"),
            (metrics, "m", "match", 0, "client_id=a"),
            (metrics, "m", "match", 0, "foo=a"),
            (metrics, "m", "match", 0, "client_id=("),
            (metrics, "m", "no.such", 0, "1"),
            (metrics, "", "interval.ms", 0, "1000"),
            (logger, node, "no.such", 0, "DEBUG"),
            (logger, node + "1", "no.such", 0, "DEBUG"),
        ):
            before = await own(kind, name)
            changes = [IncrementalConfig(config, operation, value)]
            for validate_only in (True, False):
                request = IncrementalAlterConfigsRequest([IncrementalResource(kind, name, changes)], validate_only)
                (one,) = (await broker.client.request(request, 1)).responses
                answers.append((kind, name != node, config, value, validate_only, name_of(one.error_code)))
            while not one.error_code and await own(kind, name) == before:  # noqa: ASYNC110 - there is no event to await
                await asyncio.sleep(0.01)
            answers.append(await own(kind, name))
        answers += [await own(kind, "never-seen") for kind in (group, metrics)]
        return [(*one[:1], *one[2:]) if one[0] == logger else one for one in answers]

    await same(pair, case)


async def test_quotas(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        answers: list[Any] = []

        async def alter(
            entity: Entity, *ops: tuple[str, float, bool], validate_only: bool = False, times: int = 1
        ) -> Any:
            entry = EntryData([Named(*one) for one in entity], [OpData(*op) for op in ops])
            answer = await broker.client.request(AlterClientQuotasRequest([entry] * times, validate_only), 1)
            return [
                (name_of(one.error_code), sorted((of.entity_type, of.entity_name) for of in one.entity))
                for one in answer.entries
            ]

        async def describe(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
            request = DescribeClientQuotasRequest([ComponentData(*one) for one in components], strict)
            answer = await broker.client.request(request, 1)
            if answer.entries is None:
                return name_of(answer.error_code), None
            return name_of(answer.error_code), sorted(
                (
                    sorted((of.entity_type, of.entity_name or "") for of in entry.entity),
                    sorted((value.key, value.value) for value in entry.values),
                )
                for entry in answer.entries
            )

        # The defaults stay, for a broker that serves other tests, too: so high that it delays no client.
        rate = "producer_byte_rate", 1e9, False
        good: list[Entity] = [
            [("user", "u")],
            [("user", None)],
            [("client-id", "c")],
            [("client-id", None)],
            [("user", "u"), ("client-id", "c")],
            [("user", "u"), ("client-id", None)],
            [("user", None), ("client-id", None)],
        ]
        answers += [(entity, await alter(entity, rate)) for entity in good]
        answers.append(await alter([("ip", "127.0.0.9")], ("connection_creation_rate", 5.0, False)))
        bad: list[tuple[Entity, tuple[str, float, bool]]] = [
            ([], rate),
            ([("nonsense", "x")], rate),
            ([("user", "")], rate),
            ([("ip", "127.0.0.9")], rate),
            ([("ip", "not an address")], ("connection_creation_rate", 5.0, False)),
            ([("ip", "127.0.0.9"), ("user", "u")], ("connection_creation_rate", 5.0, False)),
            ([("user", "u")], ("connection_creation_rate", 5.0, False)),
            ([("user", "u")], ("nonsense", 5.0, False)),
            ([("user", "u")], ("nonsense", 5.0, True)),
            ([("user", "u")], ("producer_byte_rate", 0.0, False)),
            ([("user", "u")], ("producer_byte_rate", -1.0, False)),
            ([("user", "u")], ("producer_byte_rate", 1.5, False)),
            ([("user", "u")], ("producer_byte_rate", float("inf"), False)),
            ([("user", "u")], ("producer_byte_rate", 1e19, False)),
            ([("user", "u")], ("request_percentage", 0.5, False)),
            ([("user", "u")], ("controller_mutation_rate", 0.5, False)),
            ([("user", "unknown")], ("producer_byte_rate", 0.0, True)),
        ]
        answers += [(entity, str(op), await alter(entity, op)) for entity, op in bad]
        answers.append(await alter([("user", "twice")], rate, rate))
        answers.append(await alter([("user", "twice")], rate, times=2))
        await alter([("user", "twice")], ("producer_byte_rate", 0.0, True))  # Kafka has made one of them
        answers.append(await alter([("user", "nothing")]))
        answers.append(await alter([("user", "only tried")], rate, validate_only=True))
        # Kafka's broker hears of them from its controller.
        marker: Entity = [("user", "the last")]
        await alter(marker, rate)
        while not (await describe(("user", EXACT, "the last")))[1]:  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
        for strict in (False, True):
            for components in (
                [],
                [("user", EXACT, "u")],
                [("user", DEFAULT, None)],
                [("user", ANY, None)],
                [("client-id", EXACT, "c")],
                [("client-id", ANY, None)],
                [("user", EXACT, "u"), ("client-id", DEFAULT, None)],
                [("user", ANY, None), ("client-id", ANY, None)],
                [("ip", ANY, None)],
                [("ip", EXACT, "127.0.0.9")],
                [("ip", ANY, None), ("user", ANY, None)],
                [("user", EXACT, None)],
                [("user", EXACT, "")],
                [("user", DEFAULT, "x")],
                [("user", ANY, "x")],
                [("user", 7, None)],
                [("nonsense", ANY, None)],
                [("", ANY, None)],
                [("user", ANY, None), ("user", ANY, None)],
            ):
                answers.append((strict, components, await describe(*components, strict=strict)))
        return answers

    await same(pair, case)


async def test_scram_users(pair: tuple[ComparedBroker, ComparedBroker]) -> None:
    async def case(broker: ComparedBroker) -> Any:
        answers: list[Any] = []

        async def alter(deletions: list[tuple[str, int]], upsertions: list[tuple[str, int, int, bytes, bytes]]) -> Any:
            request = AlterUserScramCredentialsRequest(
                [ScramCredentialDeletion(*one) for one in deletions],
                [ScramCredentialUpsertion(*one) for one in upsertions],
            )
            answer = await broker.client.request(request, 0)
            return sorted((one.user, name_of(one.error_code), bool(one.error_message)) for one in answer.results)

        async def describe(*users: str) -> Any:
            request = DescribeUserScramCredentialsRequest([UserName(user) for user in users] or None)
            answer = await broker.client.request(request, 0)
            return name_of(answer.error_code), sorted(
                (
                    one.user,
                    name_of(one.error_code),
                    sorted((info.mechanism, info.iterations) for info in one.credential_infos),
                )
                for one in answer.results
            )

        salt, salted = b"salt" * 4, b"p" * 32
        answers.append(await alter([], [("a", 1, 4096, salt, salted), ("b", 2, 16384, salt, b"p" * 64)]))
        answers.append(await alter([], [("a", 2, 8192, salt, b"p" * 64)]))
        wrong: list[tuple[str, int, int, bytes, bytes]] = [
            ("c", 1, 4095, salt, salted),
            ("c", 1, 16385, salt, salted),
            ("c", 0, 4096, salt, salted),
            ("c", 3, 4096, salt, salted),
            ("", 1, 4096, salt, salted),
            ("c", 1, -1, salt, salted),
        ]
        answers += [(one[:3], await alter([], [one])) for one in wrong]
        answers.append(await alter([("c", 1), ("", 1), ("a", 7), ("b", 1)], []))
        answers.append(await alter([("a", 1)], [("a", 1, 4096, salt, salted)]))
        answers.append(
            await alter([], [("d", 1, 4096, salt, salted), ("d", 2, 4096, salt, salted), ("e", 1, 4096, salt, salted)])
        )
        answers.append(await alter([("a", 1), ("a", 2)], []))
        answers.append(await alter([], []))
        while "z" not in str(await describe()):
            await alter([], [("z", 1, 4096, salt, salted)])
        answers.append(await describe())
        answers.append(await describe("a", "b", "c", "e"))
        answers.append(await describe("a", "a"))
        answers.append(await describe(""))
        answers.append(await alter([("a", 1)], []))
        while (await describe("a"))[1][0][2] != [(2, 8192)]:  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
        for user in "abez":
            await alter([(user, 1)], [])
            await alter([(user, 2)], [])
        return answers

    await same(pair, case)
