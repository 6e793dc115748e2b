"""Every public coroutine, cancelled wherever it waits: as docs/sending.md and docs/transactions.md say."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import (
    Delivery,
    DeliveryError,
    KafkaProducer,
    Outcome,
    PreparedTxnState,
    RecordMetadata,
    TopicPartition,
    wait_all,
)
from aioproducer.producer.producer import core_of
from tests.support.cancelling import WAYS, WAYS_AND_LOOPS, How, Run, Strike, everywhere
from tests.support.producing import all_memory_free, make_producer
from tests.support.scripted_broker import ScriptedCluster
from tests.support.transactional import PROTOCOLS, all_stable, committed

pytestmark = pytest.mark.timeout(120)


@asynccontextmanager
async def working(topics: dict[str, int] | None = None, **config: Any) -> AsyncIterator[tuple[ScriptedCluster, Any]]:
    """A cluster and a producer, which works as before at the end, whatever was cancelled."""
    async with ScriptedCluster() as cluster:
        for name, partitions in (topics or {"t": 1}).items():
            cluster.create_topic(name, partitions)
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            yield cluster, producer
            assert (await producer.send("t", b"after", partition=0)).offset >= 0
            await producer.flush()
            assert all_memory_free(producer)
            assert repr(producer).endswith("running; 0 batches have not ended>")


def values(cluster: ScriptedCluster, topic: str = "t") -> list[bytes | None]:
    return [record.value for partition in cluster.topic(topic).partitions for record in partition.log.records()]


CALLS: dict[str, Callable[[KafkaProducer], Awaitable[Any]]] = {
    "send": lambda producer: producer.send("t", b"v"),
    "enqueue": lambda producer: producer.enqueue("t", b"v"),
    "send_many": lambda producer: producer.send_many("t", [b"v"]),
    "partitions_for": lambda producer: producer.partitions_for("t"),
    "flush": lambda producer: producer.flush(),
    "client_instance_id": lambda producer: producer.client_instance_id(30),
}


@WAYS
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("known", [False, True])
def test_calls(how: How, run: Run, call: str, known: bool) -> None:
    async def scenario(strike: Strike) -> None:
        async with working() as (cluster, producer):
            if known:
                await producer.partitions_for("t")
            before = [producer.send("t", b"before")]
            result = await strike(CALLS[call](producer))
            await producer.flush()
            assert before[0].result().offset == 0
            copies = values(cluster).count(b"v")
            assert copies <= 1
            if result is not None and call in ("send", "enqueue"):
                assert copies == 1
                metadata = await result if isinstance(result, Delivery) else result
                assert isinstance(metadata, RecordMetadata)
        assert values(cluster)[-1] == b"after"

    assert everywhere(how, scenario, run) > -known


# Memory

SMALL: dict[str, Any] = {"buffer_memory": 4000, "batch_size": 1000}


async def many(producer: KafkaProducer) -> None:
    for number in range(10):
        _ = await producer.enqueue("t", b"%d " % number + bytes(900))


async def stream() -> AsyncIterator[Any]:
    import pyarrow as pa

    for number in range(5):
        await asyncio.sleep(0)
        yield pa.table({"v": [b"%d " % (2 * number + each) + bytes(900) for each in range(2)]})


LONG: dict[str, Callable[[KafkaProducer], Awaitable[Any]]] = {
    "enqueue": many,
    "send_many": lambda producer: producer.send_many("t", [b"%d " % number + bytes(900) for number in range(10)]),
    "send_table": lambda producer: producer.send_table("t", stream(), value="v"),
}


@WAYS_AND_LOOPS
@pytest.mark.parametrize("call", LONG)
def test_calls_that_wait_for_memory(how: How, run: Run, call: str) -> None:
    async def scenario(strike: Strike) -> None:
        async with working(**SMALL) as (cluster, producer):
            await strike(LONG[call](producer))
            await producer.flush()
            sent = [int((value or b"").split(b" ")[0]) for value in values(cluster)]
            assert sent == list(range(len(sent))), "in order, and each once"
            assert len(sent) == 10 or strike.cancelled

    assert everywhere(how, scenario, run) > 5


# Life


@WAYS_AND_LOOPS
@pytest.mark.parametrize("timeout", [None, 5.0, 0])
def test_close(how: How, run: Run, timeout: float | None) -> None:
    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            producer = make_producer(cluster.bootstrap_servers, linger_ms=50)
            await producer.start()
            await producer.send("t", b"first")
            deliveries = [producer.send("t", b"%d" % number) for number in range(3)]
            deliveries += [producer.send("unknown", b"v")]
            await strike(finally_done(producer.close(timeout), deliveries))
            for delivery in deliveries:
                assert isinstance(await ended(delivery), RecordMetadata | DeliveryError)
            there = values(cluster)[1:]
            delivered = [b"%d" % number for number in range(3) if deliveries[number].outcome is None]
            if not (strike.happened or timeout == 0):
                assert len(delivered) == 3
            assert set(delivered) <= set(there)
            assert not any(d.outcome is Outcome.NOT_SENT and b"%d" % n in there for n, d in enumerate(deliveries[:3]))
            await producer.close()
            assert repr(producer).endswith(": closed>")

    everywhere(how, scenario, run)


async def finally_done(call: Awaitable[None], deliveries: list[Delivery]) -> None:
    """Every delivery is done when the call ends, however that is."""
    try:
        await call
    finally:
        assert all(delivery.done() for delivery in deliveries)


async def ended(delivery: Delivery) -> RecordMetadata | DeliveryError:
    try:
        return await delivery
    except DeliveryError as error:
        return error


@WAYS_AND_LOOPS
def test_the_block(how: How, run: Run) -> None:
    """Cancelled within, the block delivers what was accepted, also in a scope that cancels at every await."""

    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 1)
            deliveries: list[Delivery] = []

            within = True

            async def work() -> None:
                nonlocal within
                async with make_producer(cluster.bootstrap_servers, linger_ms=50) as producer:
                    for _ in range(3):
                        deliveries.append(await producer.enqueue("t", b"v"))
                        await asyncio.sleep(0.001)
                        within = not strike.happened
                    within = False

            await strike(finally_done(work(), deliveries))
            if within and how is not How.TWICE:
                assert [delivery.exception() for delivery in deliveries] == [None] * len(deliveries)

    everywhere(how, scenario, run)


@WAYS
def test_wait_all(how: How, run: Run) -> None:
    async def scenario(strike: Strike) -> None:
        async with working(topics={"t": 3}) as (_, producer):
            deliveries = [producer.send("t", b"v", partition=number) for number in range(3)]
            await strike(wait_all(deliveries))
            assert [(await delivery).offset for delivery in deliveries] == [0, 0, 0]

    assert everywhere(how, scenario, run) > 0


async def test_a_stream_that_is_cancelled_in_the_turn_it_gives_has_all_that_was_accepted() -> None:
    """Its last ``enqueue`` has accepted a record, and gives other tasks a turn of the loop: the record is delivered."""
    handed_over = 0

    async def stream(producer: KafkaProducer) -> None:
        nonlocal handed_over
        while True:
            handed_over += 1
            _ = await producer.enqueue("t", b"%d" % handed_over)

    async with working() as (cluster, producer):
        _ = await producer.partitions_for("t")
        core_of(producer).accumulator.must_yield = True
        task = asyncio.ensure_future(stream(producer))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await producer.flush()
        assert values(cluster) == [b"%d" % number for number in range(1, handed_over + 1)]


# Transactions


async def block(producer: KafkaProducer) -> None:
    async with producer.transaction():
        for partition in range(3):
            _ = await producer.enqueue("t", b"in", partition=partition)
        await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g")
        await producer.send("t", b"in", partition=0)


@WAYS_AND_LOOPS
@PROTOCOLS
def test_a_transaction(how: How, run: Run, protocol: int) -> None:
    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster(transaction_version=protocol) as cluster:
            cluster.create_topic("t", 3)
            async with make_producer(cluster.bootstrap_servers, transactional_id="x") as producer:
                await producer.init_transactions()
                await strike(block(producer))
                if "is being committed" in repr(producer):
                    await producer.commit_transaction()
                async with producer.transaction():
                    await producer.send("t", b"next", partition=2)
                read = committed(cluster)
                assert read.count(b"next") == 1
                assert read.count(b"in") == 4 or (read.count(b"in") == 0 and strike.cancelled)
                assert all_stable(cluster)
                assert all_memory_free(producer)

    assert everywhere(how, scenario, run) > 3


TRANSACTIONAL: dict[str, Callable[[KafkaProducer], Awaitable[Any]]] = {
    "send_offsets": lambda producer: producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, "g"),
    "commit": lambda producer: producer.commit_transaction(),
    "abort": lambda producer: producer.abort_transaction(),
}


@WAYS
@PROTOCOLS
@pytest.mark.parametrize("call", TRANSACTIONAL)
def test_transactional_calls(how: How, run: Run, protocol: int, call: str) -> None:
    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster(transaction_version=protocol) as cluster:
            cluster.create_topic("t", 3)
            async with make_producer(cluster.bootstrap_servers, transactional_id="x") as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                _ = producer.send("t", b"in", partition=0)
                await strike(TRANSACTIONAL[call](producer))
                if call == "send_offsets" or strike.cancelled:
                    # It goes on, and whoever calls again waits for its end.
                    await TRANSACTIONAL[call](producer)
                if call == "send_offsets":
                    await producer.commit_transaction()
                assert committed(cluster).count(b"in") == (call != "abort")
                async with producer.transaction():
                    await producer.send("t", b"next", partition=2)
                assert committed(cluster).count(b"next") == 1
                assert all_stable(cluster)

    assert everywhere(how, scenario, run) > 0


@WAYS
@PROTOCOLS
@pytest.mark.parametrize("call", ["prepare", "complete", "complete another"])
def test_two_phase_commit(how: How, run: Run, protocol: int, call: str) -> None:
    configs = {"transaction.two.phase.commit.enable": True, "unstable.api.versions.enable": True}

    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster(transaction_version=protocol, configs=configs) as cluster:
            cluster.create_topic("t", 3)
            async with make_producer(
                cluster.bootstrap_servers, transactional_id="x", transaction_two_phase_commit_enable=True
            ) as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                _ = producer.send("t", b"in", partition=0)
                if call == "prepare":
                    await strike(producer.prepare_transaction())
                    if not strike.cancelled:
                        await producer.commit_transaction()
                    else:
                        assert await producer.complete_transaction(await producer.prepare_transaction())
                else:
                    state = await producer.prepare_transaction()
                    given = state if call == "complete" else PreparedTxnState()
                    await strike(producer.complete_transaction(given))
                    if strike.cancelled:
                        assert await producer.complete_transaction(given) is (given == state)
                assert committed(cluster).count(b"in") == (call != "complete another")
                async with producer.transaction():
                    await producer.send("t", b"next", partition=2)
                assert committed(cluster).count(b"next") == 1
                assert all_stable(cluster)

    assert everywhere(how, scenario, run) > 0


@WAYS
@PROTOCOLS
def test_begin_transaction(how: How, run: Run, protocol: int) -> None:
    """It waits for an abort whose caller was cancelled; cancelled itself, it has begun nothing."""

    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster(transaction_version=protocol) as cluster:
            cluster.create_topic("t", 3)
            async with make_producer(cluster.bootstrap_servers, transactional_id="x") as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                await producer.send("t", b"aborted", partition=0)
                aborting = asyncio.create_task(producer.abort_transaction())
                await asyncio.sleep(0)
                aborting.cancel()
                await asyncio.wait([aborting])
                await strike(producer.begin_transaction())
                if strike.cancelled:
                    assert "a transaction is open" not in repr(producer)
                    await producer.begin_transaction()
                await producer.send("t", b"next", partition=0)
                await producer.commit_transaction()
                assert committed(cluster) == [b"next"]
                assert all_stable(cluster)

    assert everywhere(how, scenario, run) > 0


def test_no_coroutine_is_left_out() -> None:
    """All that a producer's users can await is cancelled by a test of this file."""
    awaitable = ("Coroutine", "Delivery", "AsyncIterator")
    found = {
        name
        for name, member in inspect.getmembers(KafkaProducer, inspect.isfunction)
        if not name.startswith("_")
        and (inspect.iscoroutinefunction(member) or str(member.__annotations__["return"]).startswith(awaitable))
    }
    blocks = {"start", "close", "init_transactions", "begin_transaction", "transaction"}
    within_transactions = {"send_offsets_to_transaction", "commit_transaction", "abort_transaction"}
    two_phases = {"prepare_transaction", "complete_transaction"}
    assert found == {*CALLS, *LONG, *blocks, *within_transactions, *two_phases}


@WAYS
@PROTOCOLS
def test_init_transactions(how: How, run: Run, protocol: int) -> None:
    async def scenario(strike: Strike) -> None:
        async with ScriptedCluster(transaction_version=protocol) as cluster:
            cluster.create_topic("t", 3)
            async with make_producer(cluster.bootstrap_servers, transactional_id="x") as producer:
                await strike(producer.init_transactions())
                if strike.cancelled:
                    await producer.init_transactions()
                await block(producer)
                assert committed(cluster).count(b"in") == 4

    assert everywhere(how, scenario, run) > 0
