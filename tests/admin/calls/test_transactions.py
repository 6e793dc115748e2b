from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aioproducer import KafkaProducer
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import InvalidTxnStateException, KafkaError, ProducerFencedException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.testing.faults.fault_script import FaultScript
from tests.admin.clusters import QUICK
from tests.support.inside import manager_of


@pytest.fixture
def faults() -> FaultScript:
    return FaultScript(nodes=2)


@pytest.fixture
async def cluster(faults: FaultScript) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(2, faults=faults) as cluster:
        cluster.create_topic("t", 1)
        yield cluster
    faults.verify()


@pytest.fixture
async def admin(cluster: EmbeddedCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers, **QUICK) as admin:
        yield admin


@pytest.fixture
async def producer(cluster: EmbeddedCluster) -> AsyncIterator[KafkaProducer]:
    """In a transaction."""
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await (await producer.enqueue("t", b"v"))
        yield producer


async def test_open_transactions_are_listed_and_described(admin: KafkaAdmin, producer: KafkaProducer) -> None:
    assert await admin.list_transactions(states=["Ongoing"]) == ["x"]
    assert await admin.list_transactions(states=["Empty"]) == []
    found = await admin.describe_transactions(["nobody", "x"])
    assert list(found) == ["nobody", "x"]
    assert found["nobody"] is None
    assert found["x"] is not None
    assert (found["x"].state, found["x"].timeout_ms) == ("Ongoing", 60000)
    assert found["x"].start_time_ms > 0
    await producer.abort_transaction()
    assert await admin.list_transactions(states=["Ongoing"]) == []
    assert await admin.list_transactions() == ["x"]


@pytest.mark.parametrize("committed", [True, False])
async def test_the_transaction_of_a_producer_that_is_gone_is_ended(
    cluster: EmbeddedCluster, admin: KafkaAdmin, producer: KafkaProducer, committed: bool
) -> None:
    manager = manager_of(producer)
    second, identity = manager.second_protocol, await manager.hand_over()
    await producer.close()
    assert await admin.list_transactions(states=["Ongoing"]) == ["x"]
    for _ in range(2):
        await admin.end_transaction("x", identity, committed=committed, second_protocol=second)
    with pytest.raises(KafkaError):
        await admin.end_transaction("x", identity, committed=not committed, second_protocol=second)
    assert await admin.list_transactions(states=["Ongoing"]) == []
    assert cluster.log("t").log_end_offset == 2


async def test_a_coordinator_that_moves_is_looked_for(
    admin: KafkaAdmin, producer: KafkaProducer, faults: FaultScript
) -> None:
    faults.on(ApiKey.LIST_TRANSACTIONS).answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert await admin.list_transactions(states=["Ongoing"]) == ["x"]
    faults.on(ApiKey.END_TXN).answer(ErrorCode.NOT_COORDINATOR)
    faults.on(ApiKey.END_TXN).answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    manager = manager_of(producer)
    second, identity = manager.second_protocol, await manager.hand_over()
    await admin.end_transaction("x", identity, committed=True, second_protocol=second)
    faults.on(ApiKey.END_TXN).answer(ErrorCode.INVALID_TXN_STATE)
    with pytest.raises(InvalidTxnStateException, match="the end of the transaction of 'x'"):
        await admin.end_transaction("x", identity, committed=True, second_protocol=second)


async def test_a_producer_that_is_fenced_can_do_nothing_more(
    cluster: EmbeddedCluster, admin: KafkaAdmin, producer: KafkaProducer
) -> None:
    identity = manager_of(producer).identity
    await admin.fence_producer("x", identity, 1000)
    assert await admin.list_transactions(states=["Ongoing"]) == []
    with pytest.raises(KafkaError, match=r"(?i)fenced|newer producer|took over|taken over"):
        await producer.commit_transaction()


async def test_a_producer_is_not_fenced_when_another_one_has_taken_over(
    cluster: EmbeddedCluster, admin: KafkaAdmin, producer: KafkaProducer
) -> None:
    identity = manager_of(producer).identity
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x") as newer:
        await newer.init_transactions()
        async with newer.transaction():
            await (await newer.enqueue("t", b"w"))
        with pytest.raises(ProducerFencedException):
            await admin.fence_producer("x", identity, 1000)
