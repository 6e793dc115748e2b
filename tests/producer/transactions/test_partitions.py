"""Nothing is written outside the transaction, and it does not end before its records."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer.errors import KafkaError, TimeoutException, TransactionAbortableException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.producer.transactions.test_transaction_manager import goes_on, refused
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import end_of
from tests.support.scripted_broker import Drop, Exchange, Held, Step, after, edited, error, never, throttled
from tests.support.transactional import PROTOCOLS, a_cluster, all_stable, committed, transactional
from tests.support.virtual_time import World, virtual

pytestmark = pytest.mark.timeout(20)


@pytest.mark.usefixtures("no_leaks")
async def test_nothing_is_written_before_the_partition_was_added() -> None:
    async with a_cluster(1) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("t", b"added", partition=0)
        held = Held()
        cluster.broker.script(ApiKey.ADD_PARTITIONS_TO_TXN, held)
        waiting = producer.send("t", b"waits", partition=1)
        await cluster.broker.received(ApiKey.ADD_PARTITIONS_TO_TXN, 2)
        assert "has not answered AddPartitionsToTxn" in str(producer.explain("t", 1))
        assert cluster.broker.count(ApiKey.PRODUCE) == 1
        held.release()
        await waiting
        await producer.commit_transaction()
        assert committed(cluster) == [b"added", b"waits"]


@pytest.mark.usefixtures("no_leaks")
async def test_partitions_that_come_meanwhile_are_added_by_one_request() -> None:
    async with a_cluster(1) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        held = Held()
        cluster.broker.script(ApiKey.ADD_PARTITIONS_TO_TXN, held)
        await producer.begin_transaction()
        _ = producer.send("t", b"0", partition=0)
        await cluster.broker.received(ApiKey.ADD_PARTITIONS_TO_TXN)
        for partition in (1, 2, 1, 0):
            _ = producer.send("t", b"%d" % partition, partition=partition)
        held.release()
        await producer.commit_transaction()
        sent = cluster.broker.sent(ApiKey.ADD_PARTITIONS_TO_TXN)
        assert [sorted(request.v3_and_below_topics[0].partitions) for request in sent] == [[0], [1, 2]]


@pytest.mark.usefixtures("no_leaks")
async def test_an_abort_before_anything_was_asked_asks_nothing() -> None:
    async with a_cluster(1) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        never = producer.send("t", b"never", partition=0)
        await producer.abort_transaction()
        assert isinstance(await end_of(never), KafkaError)
        for api in (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.PRODUCE, ApiKey.END_TXN):
            assert cluster.broker.count(api) == 0
        await goes_on(cluster, producer)


@virtual
async def test_back_offs_are_kept_but_for_the_first_of_a_transaction(world: World) -> None:
    loop = asyncio.get_running_loop()
    slow: dict[str, Any] = {"retry_backoff_ms": 1000, "retry_backoff_max_ms": 1000}
    async with a_cluster(1) as cluster, transactional(cluster, **slow) as producer:
        await producer.init_transactions()
        waits = []
        busy = ErrorCode.CONCURRENT_TRANSACTIONS
        for partition, code in enumerate([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, busy, busy]):
            if partition < 2:
                await producer.begin_transaction()
            cluster.broker.script(ApiKey.ADD_PARTITIONS_TO_TXN, refused(code))
            began = loop.time()
            await producer.send("t", b"a", partition=partition)
            waits.append(loop.time() - began)
            if partition != 1:
                await producer.commit_transaction()
    assert waits[0] > 0.7  # with its jitter
    assert waits[1] < 0.1
    assert waits[2] > 0.7


@PROTOCOLS
@pytest.mark.usefixtures("no_leaks")
class TestTheEnd:
    async def test_success_is_not_reported_before_every_record_is_acknowledged(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            held = Held()
            cluster.broker.script(ApiKey.PRODUCE, held)
            await producer.begin_transaction()
            _ = producer.send("t", b"a", partition=0)
            commit = asyncio.create_task(producer.commit_transaction())
            await cluster.broker.received(ApiKey.PRODUCE)
            assert cluster.broker.count(ApiKey.END_TXN) == 0
            held.release()
            await commit
            assert committed(cluster) == [b"a"]

    async def test_a_batch_in_flight_at_an_abort_is_retried_and_answered(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            held = Held()
            cluster.broker.script(ApiKey.PRODUCE, held)
            await producer.begin_transaction()
            delivery = producer.send("t", b"a", partition=0)
            await cluster.broker.received(ApiKey.PRODUCE)
            abort = asyncio.create_task(producer.abort_transaction())
            await asyncio.sleep(0)
            (exchange,) = held.exchanges
            exchange.broker.held.clear()
            await error(ErrorCode.NOT_ENOUGH_REPLICAS)(exchange)
            await abort
            assert (await delivery).offset == 0
            assert committed(cluster) == []
            await goes_on(cluster, producer)

    async def test_a_failed_one_finds_its_coordinator_again(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send("t", b"a", partition=0)
            assert isinstance(await end_of(producer.send("t", bytes(2_000_000), partition=0)), KafkaError)
            cluster.broker.script(ApiKey.END_TXN, refused(ErrorCode.NOT_COORDINATOR))
            await producer.abort_transaction()
            assert cluster.broker.count(ApiKey.FIND_COORDINATOR) == 2
            await goes_on(cluster, producer)

    @pytest.mark.parametrize("elsewhere", [False, True])
    @virtual
    async def test_a_batch_given_up_while_it_is_under_way_does_not_get_into_the_next(
        self, world: World, protocol: int, elsewhere: bool
    ) -> None:
        """Brokers before 3.6 do not ask the coordinator whether the partition is a part of the transaction."""
        short: dict[str, Any] = {"request_timeout_ms": 1000, "delivery_timeout_ms": 1000}
        async with a_cluster(protocol, nodes=2) as cluster, transactional(cluster, **short) as producer:
            for broker in cluster.brokers:
                broker.context.transactions.check_partition = lambda *_: None  # type: ignore[method-assign]
            await producer.init_transactions()
            (coordinator,) = (one.node_id for one in cluster.brokers if one.count(ApiKey.INIT_PRODUCER_ID))
            leaders = [cluster.leader("t", partition) for partition in range(3)]
            here, there = leaders.index(1 - coordinator), leaders.index(coordinator)
            leader = cluster.brokers[1 - coordinator]
            await producer.begin_transaction()
            await producer.send("t", b"aborted", partition=here)
            late = asyncio.Event()
            leader.script(ApiKey.PRODUCE, _dropped_after(0.5), after(late))
            lost = await end_of(producer.send("t", b"given up", partition=here))
            assert isinstance(lost, TimeoutException)
            asyncio.get_running_loop().call_later(0.2, late.set)
            await producer.abort_transaction()
            async with producer.transaction():
                if elsewhere:
                    await producer.send("t", b"next", partition=there)
                await asyncio.sleep(1)
                if not elsewhere:
                    await producer.send("t", b"next", partition=here)
            assert committed(cluster) == [b"next"]
            assert all_stable(cluster)

    @virtual
    async def test_an_abort_waits_no_longer_than_a_request_may_take_for_what_was_given_up(
        self, world: World, protocol: int
    ) -> None:
        short: dict[str, Any] = {"request_timeout_ms": 1000, "delivery_timeout_ms": 1000}
        loop = asyncio.get_running_loop()
        async with a_cluster(protocol, nodes=2) as cluster, transactional(cluster, **short) as producer:
            await producer.init_transactions()
            (coordinator,) = (one.node_id for one in cluster.brokers if one.count(ApiKey.INIT_PRODUCER_ID))
            partition = [cluster.leader("t", partition) for partition in range(3)].index(1 - coordinator)
            await producer.begin_transaction()
            cluster.brokers[1 - coordinator].script(ApiKey.PRODUCE, _dropped_after(0.5), never())
            assert isinstance(await end_of(producer.send("t", b"lost", partition=partition)), TimeoutException)
            began = loop.time()
            await producer.abort_transaction()
            assert loop.time() - began < (0.6 if protocol == 1 else 0.1)
            assert [len(one.sent(ApiKey.END_TXN)) for one in cluster.brokers][coordinator] == 1

    @pytest.mark.parametrize("topic", ["missing", "not/allowed"])
    @virtual
    async def test_a_record_for_a_topic_that_is_not_there_fails_it(
        self, world: World, protocol: int, topic: str
    ) -> None:
        config: dict[str, Any] = {"configs": {"auto.create.topics.enable": False}}
        async with a_cluster(protocol, **config) as cluster, transactional(cluster, max_block_ms=300) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            lost = producer.send(topic, b"a")
            assert isinstance(await end_of(lost), KafkaError)
            with pytest.raises(TransactionAbortableException, match=topic):
                await producer.commit_transaction()
            await producer.abort_transaction()
            await goes_on(cluster, producer)

    async def test_throttled_answers_count(self, protocol: int) -> None:
        async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
            for api in (ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN):
                cluster.broker.script(api, edited(throttled(20)))
            await producer.init_transactions()
            await goes_on(cluster, producer)
            assert all_stable(cluster)


def _dropped_after(seconds: float) -> Step:
    async def step(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        raise Drop

    return step
