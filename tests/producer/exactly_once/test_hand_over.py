"""A transaction that a producer leaves open for somebody else to end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioproducer import DeliveryError, KafkaProducer
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalStateException, TransactionAbortableException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.faults.fault_script import FaultScript
from tests.support.inside import manager_of


@pytest.fixture
def faults() -> FaultScript:
    return FaultScript(nodes=1)


@pytest.fixture
async def cluster(faults: FaultScript) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(1, faults=faults) as cluster:
        cluster.create_topic("t", 1)
        yield cluster


@pytest.fixture
async def producer(cluster: EmbeddedCluster) -> AsyncIterator[KafkaProducer]:
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        yield producer


async def still_open(cluster: EmbeddedCluster) -> list[str]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        return await admin.list_transactions(states=["Ongoing"])


async def test_a_transaction_handed_over_is_whole_and_stays_open(
    cluster: EmbeddedCluster, producer: KafkaProducer
) -> None:
    _ = await producer.enqueue("t", b"v")
    identity = await manager_of(producer).hand_over()
    assert cluster.log("t").log_end_offset == 1, "what had not been sent is sent"
    with pytest.raises(IllegalStateException):
        await producer.commit_transaction()
    with pytest.raises(IllegalStateException):
        _ = await producer.enqueue("t", b"more")
    await producer.close()
    assert await still_open(cluster) == ["x"]
    assert identity.producer_id >= 0


async def test_the_producer_may_begin_anew(cluster: EmbeddedCluster, producer: KafkaProducer) -> None:
    _ = await producer.enqueue("t", b"v")
    await manager_of(producer).hand_over()
    await producer.init_transactions()
    assert await still_open(cluster) == [], "as with any other producer of that name"
    async with producer.transaction():
        _ = await producer.enqueue("t", b"w")


async def test_a_failed_transaction_is_not_handed_over(
    cluster: EmbeddedCluster, producer: KafkaProducer, faults: FaultScript
) -> None:
    faults.on(ApiKey.PRODUCE).answer(ErrorCode.INVALID_RECORD)
    delivery = await producer.enqueue("t", b"v")
    with pytest.raises(TransactionAbortableException):
        await manager_of(producer).hand_over()
    with pytest.raises(DeliveryError, match="INVALID_RECORD"):
        await delivery
    await producer.close()
    assert await still_open(cluster) == []
