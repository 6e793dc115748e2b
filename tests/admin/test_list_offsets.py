"""Offsets of partitions through the admin client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import KafkaProducer, TopicPartition
from aioproducer.admin import KafkaAdmin, ListOffsetsResultInfo, OffsetSpec
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import (
    IllegalArgumentException,
    TimeoutException,
    TopicAuthorizationException,
    UnknownTopicOrPartitionException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.faults.fault_script import FaultScript
from aioproducer.testing.simulation.listening import listen_on_network
from tests.admin.clusters import QUICK
from tests.support.virtual_time import World, virtual

LATEST, EARLIEST = OffsetSpec.latest(), OffsetSpec.earliest()


@asynccontextmanager
async def running(**more: Any) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=2, **more) as cluster:
        cluster.create_topic("t", 2)
        cluster.create_topic("u")
        yield cluster


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with running() as cluster:
        yield cluster


@pytest.fixture
async def admin(cluster: EmbeddedCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
        yield admin


async def send(cluster: EmbeddedCluster, **config: Any) -> None:
    """Records 0 to 4 into t-0 with the timestamps 1000 to 1004."""
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
        for number in range(5):
            await producer.send("t", b"v", partition=0, timestamp_ms=1000 + number)


async def test_several_partitions_of_several_leaders_at_once(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    await send(cluster)
    cluster.log("t").delete_records(2)
    for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
        offsets = {}
        for spec in (EARLIEST, LATEST):
            answer = await admin.list_offsets({TopicPartition(topic, partition): spec})
            found = answer[TopicPartition(topic, partition)]
            assert isinstance(found, ListOffsetsResultInfo)
            offsets[spec] = found.offset
        assert offsets == ({EARLIEST: 2, LATEST: 5} if (topic, partition) == ("t", 0) else {EARLIEST: 0, LATEST: 0})
    wanted = {TopicPartition("t", 0): LATEST, TopicPartition("t", 1): EARLIEST, TopicPartition("u", 0): LATEST}
    answers = await admin.list_offsets(wanted)
    assert list(answers) == list(wanted)
    assert [answer.offset for answer in answers.values() if isinstance(answer, ListOffsetsResultInfo)] == [5, 0, 0]


@pytest.mark.parametrize(("timestamp", "expected"), [(0, (0, 1000)), (1003, (3, 1003)), (1005, (-1, -1))])
async def test_by_time(admin: KafkaAdmin, cluster: EmbeddedCluster, timestamp: int, expected: tuple[int, int]) -> None:
    await send(cluster)
    partition = TopicPartition("t", 0)
    answer = (await admin.list_offsets({partition: OffsetSpec.for_timestamp(timestamp)}))[partition]
    assert isinstance(answer, ListOffsetsResultInfo)
    assert (answer.offset, answer.timestamp) == expected


async def test_committed_records_end_where_a_transaction_is_open(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    await send(cluster)
    partition = TopicPartition("t", 0)
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await (await producer.enqueue("t", b"open", partition=0))
            for level, end in (("read_uncommitted", 6), ("read_committed", 5)):
                answer = (await admin.list_offsets({partition: LATEST}, isolation_level=level))[partition]  # type: ignore[arg-type]
                assert isinstance(answer, ListOffsetsResultInfo)
                assert answer.offset == end


async def test_a_leader_that_moves_is_followed(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    await send(cluster)
    cluster.create_topic("moving", replication_factor=2)
    partition = TopicPartition("moving", 0)
    for _ in range(3):
        answer = (await admin.list_offsets({partition: LATEST}))[partition]
        assert isinstance(answer, ListOffsetsResultInfo)
        cluster.move_leader("moving", 0, 1 - cluster.leader("moving"))


@virtual
async def test_a_failed_partition_hides_no_result_of_another(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:
        nowhere, beyond, there = TopicPartition("nosuch", 0), TopicPartition("t", 2), TopicPartition("u", 0)
        servers = cluster.bootstrap_servers
        async with KafkaAdmin(bootstrap_servers=servers, **QUICK, default_api_timeout_ms=500) as admin:
            answers = await admin.list_offsets(dict.fromkeys((nowhere, beyond, there), LATEST))
            assert [type(answers[each]) for each in (nowhere, beyond)] == [UnknownTopicOrPartitionException] * 2
            assert "there is no t-2" in str(answers[beyond])
            assert isinstance(answers[there], ListOffsetsResultInfo)


async def test_an_error_that_does_not_pass_is_not_waited_for() -> None:
    script = FaultScript()
    async with EmbeddedCluster(faults=script) as cluster:
        cluster.create_topic("t")
        script.on(ApiKey.LIST_OFFSETS, topic="t").answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = TopicPartition("t", 0)
        async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
            answers = await admin.list_offsets({partition: LATEST})
        assert isinstance(answers[partition], TopicAuthorizationException)
        assert "t-0" in str(answers[partition])


@virtual
async def test_an_empty_request_needs_no_broker(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:
        servers = cluster.bootstrap_servers
        await cluster.close()
        async with KafkaAdmin(bootstrap_servers=servers, **QUICK, default_api_timeout_ms=50) as admin:
            assert await admin.list_offsets({}) == {}
            with pytest.raises(TimeoutException, match=r"listing offsets: .* no broker can be reached"):
                await admin.list_offsets({TopicPartition("t", 0): LATEST})


async def test_misuse(admin: KafkaAdmin) -> None:
    with pytest.raises(IllegalArgumentException, match="-5"):
        OffsetSpec.for_timestamp(-5)
    with pytest.raises(IllegalArgumentException, match="'committed'; it must be read_uncommitted or read_committed"):
        await admin.list_offsets({TopicPartition("t", 0): LATEST}, isolation_level="committed")  # type: ignore[arg-type]
