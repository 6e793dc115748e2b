"""Two-phase commit (KIP-939) on the embedded broker, which keeps prepared transactions: no Kafka up to 4.3.1 does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import KafkaProducer, PreparedTxnState, TopicPartition
from aioproducer.admin import KafkaAdmin
from aioproducer.errors import (
    ConfigException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidTxnStateException,
    KafkaError,
    ProducerFencedException,
    TimeoutException,
    TransactionAbortableException,
    TransactionalIdAuthorizationException,
    UnsupportedVersionException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.transactions.state import TransactionState
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.end_txn import EndTxnResponse
from aioproducer.sync import KafkaProducer as SyncProducer
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.support.inside import manager_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import Exchange, Held, ScriptedCluster, drop, error
from tests.support.transactional import PROTOCOLS, a_cluster, all_stable, committed, transactional
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]

ALLOWED = {"transaction.two.phase.commit.enable": True, "unstable.api.versions.enable": True}

S = TransactionState


@asynccontextmanager
async def cluster_of(protocol: int = 2, nodes: int = 1) -> Any:
    async with a_cluster(protocol, nodes, configs=ALLOWED) as cluster:
        cluster.create_topic("in", 1, nodes)
        yield cluster


def two_phases(cluster: ScriptedCluster, **config: Any) -> KafkaProducer:
    return transactional(cluster, transaction_two_phase_commit_enable=True, **config)


def state_of(producer: KafkaProducer) -> TransactionState:
    return manager_of(producer).status.state


async def prepared(producer: KafkaProducer, value: bytes = b"a") -> PreparedTxnState:
    """A transaction with one record and one offset, prepared."""
    await producer.begin_transaction()
    _ = producer.send("t", value, partition=0)
    await producer.send_offsets_to_transaction({TopicPartition("in", 0): 7}, "g")
    return await producer.prepare_transaction()


async def left_prepared(cluster: ScriptedCluster, value: bytes = b"a") -> PreparedTxnState:
    """What a producer that was closed has left."""
    async with two_phases(cluster) as producer:
        await producer.init_transactions()
        return await prepared(producer, value)


@PROTOCOLS
class TestPrepared:
    async def test_all_records_are_in_the_log_and_none_is_visible(self, protocol: int) -> None:
        async with (
            cluster_of(protocol) as cluster,
            two_phases(cluster, linger_ms=60_000, delivery_timeout_ms=90_000) as producer,
        ):
            assert not await producer.init_transactions()
            state = await prepared(producer)
            assert state == PreparedTxnState(*manager_of(producer).identity)
            assert cluster.values("t") == [b"a"]
            assert committed(cluster) == []
            assert "prepared" in repr(producer)
            await producer.commit_transaction()
            assert committed(cluster) == [b"a"]

    @pytest.mark.parametrize("same", [True, False])
    async def test_it_is_committed_if_the_state_is_its_own(self, protocol: int, same: bool) -> None:
        async with cluster_of(protocol) as cluster, two_phases(cluster) as producer:
            await producer.init_transactions()
            state = await prepared(producer)
            given = state if same else PreparedTxnState(state.producer_id, state.epoch + 1)
            assert await producer.complete_transaction(given) is same
            assert committed(cluster) == ([b"a"] if same else [])
            assert await prepared(producer, b"next") != state, "each transaction has a state of its own"
            await producer.commit_transaction()
            assert all_stable(cluster)
            assert committed(cluster)[-1] == b"next"

    async def test_the_empty_state_aborts(self, protocol: int) -> None:
        async with cluster_of(protocol) as cluster, two_phases(cluster) as producer:
            await producer.init_transactions()
            await prepared(producer)
            assert await producer.complete_transaction(PreparedTxnState()) is False
            assert committed(cluster) == []
            assert all_stable(cluster)

    async def test_an_empty_transaction(self, protocol: int) -> None:
        async with cluster_of(protocol) as cluster, two_phases(cluster) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            assert await producer.complete_transaction(await producer.prepare_transaction())
            assert cluster.broker.count(ApiKey.END_TXN) == 0

    async def test_it_survives_the_producer_and_fences_it(self, protocol: int) -> None:
        async with cluster_of(protocol) as cluster, two_phases(cluster) as older, two_phases(cluster) as newer:
            await older.init_transactions()
            state = await prepared(older)
            assert await newer.init_transactions(keep_prepared_txn=True) == state
            assert state_of(newer) is S.PREPARED_TRANSACTION
            with pytest.raises(ProducerFencedException):
                await older.complete_transaction(state)
            assert await newer.complete_transaction(PreparedTxnState.parse(str(state)))
            assert committed(cluster) == [b"a"]
            await prepared(newer, b"b")
            await newer.commit_transaction()
            assert committed(cluster) == [b"a", b"b"]
            assert all_stable(cluster)

    @pytest.mark.parametrize("end", ["commit", "abort", "complete", "complete another"])
    async def test_another_producer_ends_it(self, protocol: int, end: str) -> None:
        async with cluster_of(protocol) as cluster:
            state = await left_prepared(cluster)
            assert await left_again(cluster) == state, "and it stays what it was"
            async with two_phases(cluster) as producer:
                assert await producer.init_transactions(keep_prepared_txn=True) == state
                if end == "commit":
                    await producer.commit_transaction()
                elif end == "abort":
                    await producer.abort_transaction()
                else:
                    await producer.complete_transaction(state if end == "complete" else PreparedTxnState(1, 1))
            assert committed(cluster) == ([b"a"] if end in ("commit", "complete") else [])
            assert all_stable(cluster)
            async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
                offsets = await admin.list_consumer_group_offsets("g")
            assert bool(offsets) is (end in ("commit", "complete"))

    async def test_without_keeping_it_is_aborted(self, protocol: int) -> None:
        async with cluster_of(protocol) as cluster:
            await left_prepared(cluster)
            async with two_phases(cluster) as producer:
                assert not await producer.init_transactions()
                assert state_of(producer) is S.READY
            assert committed(cluster) == []
            assert all_stable(cluster)

    async def test_there_may_be_none_to_keep(self, protocol: int) -> None:
        async with cluster_of(protocol) as cluster, two_phases(cluster) as producer:
            assert not await producer.init_transactions(keep_prepared_txn=True)
            with pytest.raises(InvalidTxnStateException, match="no transaction is prepared"):
                await producer.complete_transaction(PreparedTxnState(1, 1))
            assert await producer.complete_transaction(await prepared(producer))

    async def test_a_record_that_fails_fails_the_preparation(self, protocol: int) -> None:
        async with cluster_of(protocol) as cluster, two_phases(cluster) as producer:
            await producer.init_transactions()
            cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.INVALID_RECORD))
            await producer.begin_transaction()
            _ = producer.send("t", b"bad", partition=0)
            with pytest.raises(TransactionAbortableException, match="INVALID_RECORD"):
                await producer.prepare_transaction()
            with pytest.raises(TransactionAbortableException):
                await producer.complete_transaction(PreparedTxnState(1, 1))
            await producer.abort_transaction()
            assert await producer.complete_transaction(await prepared(producer))
            assert committed(cluster) == [b"a"]

    async def test_lost_answers_change_nothing(self, protocol: int) -> None:
        async with cluster_of(protocol) as cluster:
            state = await left_prepared(cluster)
            async with two_phases(cluster) as producer:
                cluster.broker.script(ApiKey.INIT_PRODUCER_ID, drop(appended=True), drop(appended=True))
                assert await producer.init_transactions(keep_prepared_txn=True) == state
                cluster.broker.script(ApiKey.END_TXN, drop(appended=True))
                assert await producer.complete_transaction(state)
                assert await producer.complete_transaction(await prepared(producer, b"b"))
            assert committed(cluster) == [b"a", b"b"]
            assert all_stable(cluster)


async def left_again(cluster: ScriptedCluster) -> PreparedTxnState:
    """What is prepared, after another producer has looked at it and done nothing."""
    async with two_phases(cluster) as producer:
        return await producer.init_transactions(keep_prepared_txn=True)


CALLS: dict[str, Callable[[KafkaProducer], Awaitable[Any]]] = {
    "init": lambda producer: producer.init_transactions(),
    "init and keep": lambda producer: producer.init_transactions(keep_prepared_txn=True),
    "begin": lambda producer: producer.begin_transaction(),
    "send": lambda producer: producer.send("t", b"v"),
    "enqueue": lambda producer: producer.enqueue("t", b"v"),
    "send_many": lambda producer: producer.send_many("t", [b"v"]),
    "offsets": lambda producer: producer.send_offsets_to_transaction({TopicPartition("in", 0): 1}, "g"),
    "prepare": lambda producer: producer.prepare_transaction(),
}
"""What a producer may not do while its transaction is prepared; ``flush`` has nothing to do."""


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("call", CALLS)
async def test_a_prepared_transaction_only_ends(call: str, kept: bool) -> None:
    async with cluster_of() as cluster:
        state = await left_prepared(cluster)
        async with two_phases(cluster) as producer:
            if kept:
                await producer.init_transactions(keep_prepared_txn=True)
            else:
                await producer.init_transactions()
                state = await prepared(producer)
            with pytest.raises(IllegalStateException, match="the transaction is prepared"):
                await CALLS[call](producer)
            await producer.flush()
            assert await producer.complete_transaction(state)


@pytest.mark.parametrize("raised", [None, ValueError, asyncio.CancelledError])
async def test_a_block_that_prepared_commits_or_leaves_the_decision(raised: type[BaseException] | None) -> None:
    """Once it is prepared, an error of the block may have come after the decision: nothing is aborted."""
    async with cluster_of() as cluster:

        async def work() -> None:
            async with two_phases(cluster) as producer:
                await producer.init_transactions()
                async with producer.transaction():
                    _ = await producer.enqueue("t", b"a", partition=0)
                    await producer.prepare_transaction()
                    if raised is not None:
                        raise raised()

        if raised is None:
            await work()
        else:
            with pytest.raises(raised):
                await work()
        assert committed(cluster) == ([] if raised else [b"a"])
        assert bool(await left_again(cluster)) is (raised is not None)


class TestClosing:
    async def test_while_it_is_being_prepared(self) -> None:
        async with cluster_of() as cluster:
            producer = two_phases(cluster)
            await producer.start()
            await producer.init_transactions()
            await producer.begin_transaction()
            held = Held()
            cluster.broker.always(ApiKey.PRODUCE, held)
            _ = producer.send("t", b"a", partition=0)
            preparing = asyncio.create_task(producer.prepare_transaction())
            await cluster.broker.received(ApiKey.PRODUCE)
            assert state_of(producer) is S.PREPARING_TRANSACTION
            closing = asyncio.create_task(producer.close())
            await asyncio.sleep(0)
            held.release()
            await closing
            assert await preparing == await left_again(cluster)

    async def test_while_it_fails_to_be_prepared(self) -> None:
        async with cluster_of() as cluster:
            producer = two_phases(cluster)
            await producer.start()
            await producer.init_transactions()
            await producer.begin_transaction()
            cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.INVALID_RECORD))
            _ = producer.send("t", b"bad", partition=0)
            preparing = asyncio.create_task(producer.prepare_transaction())
            await asyncio.sleep(0)
            await producer.close()
            with pytest.raises(TransactionAbortableException):
                await preparing
            assert not await left_again(cluster)
            assert all_stable(cluster)

    @pytest.mark.parametrize("same", [True, False])
    async def test_while_it_is_completed(self, same: bool) -> None:
        async with cluster_of() as cluster:
            producer = two_phases(cluster)
            await producer.start()
            await producer.init_transactions()
            state = await prepared(producer)
            held = Held()
            cluster.broker.script(ApiKey.END_TXN, held)
            completing = asyncio.create_task(producer.complete_transaction(state if same else PreparedTxnState()))
            await cluster.broker.received(ApiKey.END_TXN)
            closing = asyncio.create_task(producer.close())
            await asyncio.sleep(0)
            held.release()
            await closing
            assert await completing is same
            assert committed(cluster) == ([b"a"] if same else [])
            assert all_stable(cluster)


class TestTimeOuts:
    @virtual
    async def test_calling_again_waits_for_the_same_end(self, world: World) -> None:
        async with cluster_of() as cluster, two_phases(cluster, max_block_ms=500) as producer:
            await producer.init_transactions()
            held = Held()
            cluster.broker.always(ApiKey.PRODUCE, held)
            await producer.begin_transaction()
            _ = producer.send("t", b"a", partition=0)
            with pytest.raises(TimeoutException, match="prepare_transaction has not ended"):
                await producer.prepare_transaction()
            for call in (producer.commit_transaction, producer.abort_transaction):
                with pytest.raises(IllegalStateException, match="prepare_transaction has not ended"):
                    await call()
            cluster.broker.always(ApiKey.PRODUCE, None)
            held.release()
            state = await producer.prepare_transaction()
            cluster.broker.always(ApiKey.END_TXN, held)
            with pytest.raises(TimeoutException, match="complete_transaction has not ended"):
                await producer.complete_transaction(state)
            with pytest.raises(IllegalStateException, match="complete_transaction has not ended"):
                await producer.complete_transaction(PreparedTxnState())
            cluster.broker.always(ApiKey.END_TXN, None)
            held.release()
            await asyncio.sleep(1)
            assert await producer.complete_transaction(state)
            assert committed(cluster) == [b"a"]
            await producer.begin_transaction()

    @virtual
    async def test_init_with_and_without_keeping_are_different_calls(self, world: World) -> None:
        async with cluster_of() as cluster:
            state = await left_prepared(cluster)
            async with two_phases(cluster, max_block_ms=500) as producer:
                held = Held()
                cluster.broker.script(ApiKey.INIT_PRODUCER_ID, held)
                with pytest.raises(TimeoutException, match="keep_prepared_txn=True"):
                    await producer.init_transactions(keep_prepared_txn=True)
                with pytest.raises(IllegalStateException, match=r"init_transactions\(keep_prepared_txn=True\)"):
                    await producer.init_transactions()
                held.release()
                assert await producer.init_transactions(keep_prepared_txn=True) == state

    @virtual
    async def test_a_transaction_of_two_phases_never_times_out(self, world: World) -> None:
        async with cluster_of() as cluster:
            state = await left_prepared(cluster)
            await asyncio.sleep(100_000)
            async with two_phases(cluster) as producer:
                assert await producer.init_transactions(keep_prepared_txn=True) == state
                await asyncio.sleep(100_000)
                assert await producer.complete_transaction(state)
            assert committed(cluster) == [b"a"]


class TestMisuse:
    def test_transactions_without_a_time_out_have_none(self) -> None:
        with pytest.raises(ConfigException, match=r"transaction\.timeout\.ms") as raised:
            KafkaProducer(
                bootstrap_servers="b:1",
                transactional_id="x",
                transaction_two_phase_commit_enable=True,
                transaction_timeout_ms=60_000,
            )
        assert raised.value.name == "transaction.timeout.ms"

    async def test_two_phases_are_to_be_enabled(self) -> None:
        async with cluster_of() as cluster, transactional(cluster) as producer:
            with pytest.raises(InvalidTxnStateException, match=r"transaction\.two\.phase\.commit\.enable=true"):
                await producer.init_transactions(keep_prepared_txn=True)
            await producer.init_transactions()
            await producer.begin_transaction()
            with pytest.raises(InvalidTxnStateException, match=r"transaction\.two\.phase\.commit\.enable=true"):
                await producer.prepare_transaction()
            with pytest.raises(InvalidTxnStateException, match="no transaction is prepared"):
                await producer.complete_transaction(PreparedTxnState(1, 1))
            await producer.abort_transaction()

    async def test_only_an_open_transaction_is_prepared(self) -> None:
        async with cluster_of() as cluster, two_phases(cluster) as producer:
            with pytest.raises(IllegalStateException, match=r"init_transactions\(\) was not called"):
                await producer.prepare_transaction()
            await producer.init_transactions()
            with pytest.raises(IllegalStateException, match="no transaction has begun"):
                await producer.prepare_transaction()

    async def test_a_closed_producer_prepares_and_completes_nothing(self) -> None:
        async with cluster_of() as cluster:
            producer = two_phases(cluster)
            await producer.start()
            await producer.close()
            for call in (producer.prepare_transaction(), producer.complete_transaction(PreparedTxnState())):
                with pytest.raises(IllegalStateException, match="closed"):
                    await call

    @pytest.mark.parametrize("keep", [False, True])
    async def test_a_broker_that_is_too_old(self, keep: bool) -> None:
        async with a_cluster() as cluster, two_phases(cluster) as producer:
            advice = "has no keep_prepared_txn" if keep else r"unstable\.api\.versions\.enable=true"
            with pytest.raises(UnsupportedVersionException, match=advice):
                await producer.init_transactions(keep_prepared_txn=keep)
            with pytest.raises(UnsupportedVersionException):
                await producer.begin_transaction()
            assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 0

    async def test_a_broker_that_does_not_allow_it(self) -> None:
        async with (
            a_cluster(configs={"unstable.api.versions.enable": True}) as cluster,
            two_phases(cluster) as producer,
        ):
            for _ in range(2):  # it may be allowed meanwhile
                with pytest.raises(TransactionalIdAuthorizationException, match="TWO_PHASE_COMMIT"):
                    await producer.init_transactions()
            assert state_of(producer) is S.UNINITIALIZED

    async def test_a_broker_that_keeps_nothing(self) -> None:
        """Kafka up to 4.3.1 answers so."""
        async with cluster_of() as cluster, two_phases(cluster) as producer:
            cluster.broker.script(ApiKey.INIT_PRODUCER_ID, refuse_with(ErrorCode.UNSUPPORTED_VERSION))
            with pytest.raises(
                UnsupportedVersionException, match=r"still open; end it with KafkaAdmin\.end_transaction"
            ):
                await producer.init_transactions(keep_prepared_txn=True)

    async def test_other_errors_are_as_without_two_phases(self) -> None:
        async with cluster_of() as cluster, two_phases(cluster) as producer:
            cluster.broker.script(ApiKey.INIT_PRODUCER_ID, refuse_with(ErrorCode.PRODUCER_FENCED))
            with pytest.raises(ProducerFencedException) as raised:
                await producer.init_transactions()
            assert "two.phase" not in str(raised.value)


def refuse_with(code: ErrorCode) -> Callable[[Exchange], Awaitable[None]]:
    async def step(exchange: Exchange) -> None:
        response = exchange.handle()
        response.error_code = code
        exchange.reply(response)

    return step


async def test_a_failed_commit_of_a_prepared_transaction_may_be_aborted() -> None:
    async with cluster_of() as cluster, two_phases(cluster) as producer:
        await producer.init_transactions()
        state = await prepared(producer)
        cluster.broker.script(ApiKey.END_TXN, end_refused(ErrorCode.TRANSACTION_ABORTABLE))
        with pytest.raises(TransactionAbortableException):
            await producer.complete_transaction(state)
        await producer.abort_transaction()
        assert await producer.complete_transaction(await prepared(producer, b"b"))
        assert committed(cluster) == [b"b"]


def end_refused(code: ErrorCode) -> Callable[[Exchange], Awaitable[None]]:
    """The coordinator answers so, and has ended nothing."""

    async def step(exchange: Exchange) -> None:
        exchange.reply(EndTxnResponse(error_code=code))

    return step


async def test_the_state_of_an_empty_transaction_is_not_that_of_the_next() -> None:
    """Otherwise the next one, undecided, would pass for the one that was decided."""
    for protocol in (1, 2):
        async with cluster_of(protocol) as cluster:
            async with two_phases(cluster) as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                decided = await producer.prepare_transaction()
                assert await producer.complete_transaction(decided)
                undecided = await prepared(producer)
            assert undecided != decided
            async with two_phases(cluster) as producer:
                assert await producer.init_transactions(keep_prepared_txn=True) == undecided
                assert not await producer.complete_transaction(decided)
            assert committed(cluster) == []


async def test_the_text_of_a_state_is_refused() -> None:
    async with cluster_of() as cluster, two_phases(cluster) as producer:
        await producer.init_transactions()
        state = await prepared(producer)
        text: Any = str(state)
        with pytest.raises(
            IllegalArgumentException, match=r"needs a PreparedTxnState, not str: PreparedTxnState\.parse"
        ):
            await producer.complete_transaction(text)
        assert await producer.complete_transaction(state)
        assert committed(cluster) == [b"a"]


async def test_the_metrics_of_the_calls() -> None:
    async with cluster_of() as cluster, two_phases(cluster) as producer:

        def spent(call: str) -> float:
            return producer.metrics()[f"txn-{call}-time-ns-total"]

        await producer.init_transactions()
        state = await prepared(producer)
        assert spent("prepare") > 0
        assert spent("commit") == 0
        await producer.complete_transaction(state)
        assert spent("commit") > 0
        assert spent("abort") == 0
        await prepared(producer)
        await producer.complete_transaction(state)
        assert spent("abort") > 0


def test_in_threads() -> None:
    with ThreadedCluster(configs=ALLOWED) as cluster:
        cluster.create_topic("t")
        conf: dict[str, Any] = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "transactional_id": "x",
            "transaction_two_phase_commit_enable": True,
        }
        with SyncProducer(**conf) as producer:
            assert not producer.init_transactions()
            producer.begin_transaction()
            producer.send("t", b"a")
            state = producer.prepare_transaction()
        with SyncProducer(**conf) as producer:
            assert producer.init_transactions(keep_prepared_txn=True) == state
            assert producer.complete_transaction(state)
            with pytest.raises(KafkaError, match="no transaction is prepared"):
                producer.complete_transaction(state)
