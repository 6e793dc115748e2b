from __future__ import annotations

import logging
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.config_changes import OpType
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

from . import Connect, RawClient, make_batch

TOPIC, BROKER = 2, 4
WINDOW = "producer.state.batches.to.retain"
TWO_NODES = pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(kind, name, [AlterableConfig(*change) for change in changes])


async def alter(client: RawClient, *resources: AlterConfigsResource, version: int = 1, **more: Any) -> list[Any]:
    response = await client.request(IncrementalAlterConfigsRequest(list(resources), **more), version)
    responses: list[Any] = response.responses
    assert [(one.resource_type, one.resource_name) for one in responses] == [
        (one.resource_type, one.resource_name) for one in resources
    ]
    return responses


async def only(client: RawClient, kind: int, name: str, *changes: tuple[str, int, str | None], **more: Any) -> Any:
    (response,) = await alter(client, resource(kind, name, *changes), **more)
    return ErrorCode(response.error_code), response.error_message


DONE = ErrorCode.NONE, None


@pytest.mark.parametrize("version", [0, 1])
async def test_configs_are_set_deleted_and_appended_to_in_every_version(
    cluster: EmbeddedCluster, client: RawClient, version: int
) -> None:
    cluster.create_topic("t", configs={"retention.bytes": 1000})
    answer = await only(
        client,
        TOPIC,
        "t",
        ("max.message.bytes", OpType.SET, "5000"),
        ("retention.bytes", OpType.DELETE, None),
        ("cleanup.policy", OpType.APPEND, "compact"),
        version=version,
    )
    assert answer == DONE
    assert cluster.topic("t").configs == {"max.message.bytes": "5000", "cleanup.policy": "delete,compact"}
    assert cluster.log("t").config.max_message_bytes == 5000
    assert cluster.log("t").config.retention_bytes == -1


async def test_each_resource_changes_as_a_whole_or_not_at_all(cluster: EmbeddedCluster, client: RawClient) -> None:
    for name in "ab":
        cluster.create_topic(name)
    good, bad = await alter(
        client,
        resource(TOPIC, "a", ("max.message.bytes", OpType.SET, "5000")),
        resource(TOPIC, "b", ("max.message.bytes", OpType.SET, "5000"), ("min.insync.replicas", OpType.SET, "0")),
    )
    assert [good.error_code, bad.error_code] == [ErrorCode.NONE, ErrorCode.INVALID_CONFIG]
    assert "min.insync.replicas" in bad.error_message
    assert cluster.topic("a").config.max_message_bytes == 5000
    assert cluster.topic("b").configs == {}


async def test_only_validate(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    assert await only(client, TOPIC, "t", (WINDOW, OpType.SET, "20"), validate_only=True) == DONE
    assert await only(client, BROKER, "", (f"log.{WINDOW}", OpType.SET, "20"), validate_only=True) == DONE
    assert (await only(client, TOPIC, "t", (WINDOW, OpType.SET, "4"), validate_only=True))[0] is (
        ErrorCode.INVALID_CONFIG
    )
    assert cluster.log("t").config.producer_state_batches_to_retain == 5


@TWO_NODES
@pytest.mark.parametrize(
    ("kind", "name", "change", "code"),
    [
        (TOPIC, "not-there", ("retention.ms", OpType.SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "no/name", ("retention.ms", OpType.SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ("retention.ms", OpType.SET, "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", ("no.such", OpType.SET, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", ("retention.ms", OpType.SET, "long"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", ("retention.ms", OpType.APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", ("cleanup.policy", OpType.APPEND, "recycle"), ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", ("retention.ms", OpType.SET, None), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", ("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (TOPIC, "t", (WINDOW, OpType.SET, "4"), ErrorCode.INVALID_CONFIG),
        (BROKER, "", ("num.partitions", OpType.SET, "3"), ErrorCode.INVALID_REQUEST),
        (BROKER, "", ("no.such", OpType.SET, "3"), ErrorCode.INVALID_REQUEST),
        (BROKER, "0", (f"log.{WINDOW}", OpType.SET, "4"), ErrorCode.INVALID_REQUEST),
        (BROKER, "0", (f"log.{WINDOW}", OpType.APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (BROKER, "1", ("log.retention.bytes", OpType.SET, "1"), ErrorCode.INVALID_REQUEST),
        (BROKER, "zero", ("log.retention.bytes", OpType.SET, "1"), ErrorCode.INVALID_REQUEST),
        (8, "0", ("root", OpType.SET, "DEBUG"), ErrorCode.INVALID_CONFIG),
    ],
)
async def test_an_impossible_change_is_refused(
    cluster: EmbeddedCluster,
    client: RawClient,
    kind: int,
    name: str,
    change: tuple[str, int, str | None],
    code: ErrorCode,
) -> None:
    cluster.create_topic("t")
    answered, message = await only(client, kind, name, change)
    assert answered is code
    assert message
    assert cluster.topic("t").configs == {}


async def test_a_resource_or_a_config_twice(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    twice = ("retention.ms", OpType.SET, "1"), ("retention.ms", OpType.SET, "2")
    assert (await only(client, TOPIC, "t", *twice))[0] is ErrorCode.INVALID_REQUEST
    both = await alter(client, *(resource(TOPIC, "t", change) for change in twice))
    assert [one.error_code for one in both] == [ErrorCode.INVALID_REQUEST] * 2
    assert cluster.topic("t").configs == {}


async def test_configs_without_effect_are_logged_once(
    cluster: EmbeddedCluster, client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create_topic("t")
    with caplog.at_level(logging.WARNING, "aioproducer.broker"):
        for value in "12":
            await only(client, TOPIC, "t", ("retention.ms", OpType.SET, value), ("retention.bytes", OpType.SET, value))
    assert [record.getMessage() for record in caplog.records] == [
        "topic config retention.ms is stored without effect in the embedded broker"
    ]


async def produce(cluster: EmbeddedCluster, client: RawClient, sequence: int, version: int = 14) -> Any:
    batch = make_batch(b"%d" % sequence, producer_id=5, producer_epoch=0, base_sequence=sequence)
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, batch)])
    response = await client.request(ProduceRequest(acks=-1, topic_data=[data]), version)
    return response.responses[0].partition_responses[0]


async def is_remembered(cluster: EmbeddedCluster, client: RawClient, sequence: int, version: int = 14) -> bool:
    """Whether a retry is recognised. Sequences and offsets are the same here."""
    answer = await produce(cluster, client, sequence, version)
    if answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        return False
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, sequence)
    return True


class TestTheWindow:
    """KIP-1269: how many batches are remembered, changed while producers write."""

    @pytest.mark.parametrize(("kind", "name", "config"), [(TOPIC, "t", WINDOW), (BROKER, "", f"log.{WINDOW}")])
    async def test_a_wider_window_is_in_the_next_answer_and_a_narrower_one_forgets_batches(
        self, cluster: EmbeddedCluster, client: RawClient, kind: int, name: str, config: str
    ) -> None:
        cluster.create_topic("t")
        retained = [(await produce(cluster, client, 0)).producer_state_batches_to_retain]
        assert await only(client, kind, name, (config, OpType.SET, "20")) == DONE
        retained += [(await produce(cluster, client, n)).producer_state_batches_to_retain for n in range(1, 21)]
        assert retained == [5] + [20] * 20
        assert await is_remembered(cluster, client, 1)
        assert not await is_remembered(cluster, client, 0)

        assert await only(client, kind, name, (config, OpType.SET, "7")) == DONE
        answer = await produce(cluster, client, 14)
        assert (answer.base_offset, answer.producer_state_batches_to_retain) == (14, 7)
        assert not await is_remembered(cluster, client, 13)
        # What was forgotten does not come back with a wider window.
        assert await only(client, kind, name, (config, OpType.SET, "20")) == DONE
        assert not await is_remembered(cluster, client, 13)
        assert await only(client, kind, name, (config, OpType.DELETE, None)) == DONE
        assert (await produce(cluster, client, 21)).producer_state_batches_to_retain == 5
        assert not await is_remembered(cluster, client, 16)
        assert await is_remembered(cluster, client, 17)

    async def test_the_topics_own_counts_more_than_the_brokers(
        self, cluster: EmbeddedCluster, client: RawClient
    ) -> None:
        cluster.create_topic("t", configs={WINDOW: 9})
        assert await only(client, BROKER, "", (f"log.{WINDOW}", OpType.SET, "20")) == DONE
        assert (await produce(cluster, client, 0)).producer_state_batches_to_retain == 9
        assert await only(client, TOPIC, "t", (WINDOW, OpType.DELETE, None)) == DONE
        assert (await produce(cluster, client, 1)).producer_state_batches_to_retain == 20

    @TWO_NODES
    async def test_each_node_may_have_its_own(self, cluster: EmbeddedCluster, connect: Connect) -> None:
        clients = [await connect(0), await connect(1)]
        cluster.create_topic("t", assignments=[[0, 1]])
        for node_id, window in enumerate(["8", "20"]):
            answer = await only(clients[node_id], BROKER, str(node_id), (f"log.{WINDOW}", OpType.SET, window))
            assert answer == DONE
        for sequence in range(20):
            assert (await produce(cluster, clients[0], sequence)).producer_state_batches_to_retain == 8
        assert not await is_remembered(cluster, clients[0], 11)
        cluster.move_leader("t", 0, 1)
        assert (await produce(cluster, clients[1], 20)).producer_state_batches_to_retain == 20
        assert await is_remembered(cluster, clients[1], 1), "node 1 has followed its own config all along"

    @pytest.mark.parametrize("cluster", [{"nodes": 2, "old_nodes": [1]}], indirect=True)
    async def test_an_old_node_takes_no_notice(self, cluster: EmbeddedCluster, connect: Connect) -> None:
        old = await connect(1)
        cluster.create_topic("t", assignments=[[1, 0]])
        assert await only(old, TOPIC, "t", (WINDOW, OpType.SET, "20")) == DONE, "as in Kafka, the controller takes it"
        code, message = await only(old, BROKER, "1", (f"log.{WINDOW}", OpType.SET, "20"))
        assert code is ErrorCode.INVALID_REQUEST
        assert "before KIP-1269" in message
        for sequence in range(10):
            answer = await produce(cluster, old, sequence, 13)
            assert answer.producer_state_batches_to_retain == 5
        assert not await is_remembered(cluster, old, 4, 13)
        assert await is_remembered(cluster, old, 5, 13)


async def test_size_and_retention_while_it_runs(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    for sequence in range(10):
        await produce(cluster, client, sequence)
    log = cluster.log("t")
    one = log.size_in_bytes // 10
    assert await only(client, TOPIC, "t", ("retention.bytes", OpType.SET, str(4 * one))) == DONE
    await produce(cluster, client, 10)
    assert log.log_start_offset > 6
    assert await only(client, BROKER, "0", ("message.max.bytes", OpType.SET, "10")) == DONE
    assert (await produce(cluster, client, 11)).error_code == ErrorCode.MESSAGE_TOO_LARGE
