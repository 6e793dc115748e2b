"""Bugs that other clients had, one test for each, with the whole producer."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import re
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import aioproducer
from aioproducer import Delivery, DeliveryError, KafkaProducer, Outcome
from aioproducer.errors import IllegalStateException, KafkaError, TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.client import HEAD_START
from aioproducer.producer.producer import core_of
from aioproducer.protocol.api_key import ApiKey
from aioproducer.records.record_batch import read_batches
from tests.producer.simulations.standing_loop import new_result, sequences_of
from tests.support.compiled import interpreted_only
from tests.support.inside import parts_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer
from tests.support.scripted_broker import (
    ScriptedCluster,
    Step,
    after,
    answer,
    crumbs,
    drop,
    edited,
    error,
    never,
    partial,
    raw,
    with_appendix,
    wrong_correlation_id,
)
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]

TICKS = range(6)


@asynccontextmanager
async def running(partitions: int = 1, **config: Any) -> AsyncIterator[tuple[ScriptedCluster, KafkaProducer]]:
    """A producer that knows the topic ``t``."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", partitions)
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            await producer.partitions_for("t")
            yield cluster, producer


async def at_tick(tick: int, do: Callable[[], object]) -> None:
    for _ in range(tick):
        await asyncio.sleep(0)
    do()


# asyncio


def test_wait_for_is_not_used() -> None:
    package = Path(aioproducer.__file__).parent
    for source in package.rglob("*.py"):
        assert not re.search(r"asyncio\.wait_for\b|import .*\bwait_for\b", source.read_text()), source


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("cancelled", TICKS)
@pytest.mark.parametrize("completed", TICKS)
async def test_a_delivery_completed_and_its_awaiter_cancelled(completed: int, cancelled: int, fails: bool) -> None:
    result = new_result(asyncio.get_running_loop(), "t", 0)
    one, other = Delivery(result, 0), Delivery(result, 1)
    sizes = bytes(32)

    async def wait(delivery: Delivery) -> Any:
        return await delivery

    tasks = [asyncio.create_task(wait(one)), asyncio.create_task(wait(other)), asyncio.create_task(wait(one))]
    failure = DeliveryError.of(KafkaError("no luck"), Outcome.UNKNOWN)
    await asyncio.gather(
        at_tick(completed, lambda: result.fail(failure) if fails else result.succeed(5, -1, 0, sizes)),
        at_tick(cancelled, tasks[0].cancel),
    )
    await asyncio.wait(tasks)
    if not tasks[0].cancelled():
        assert (tasks[0].exception() is not None) == fails
    for task, offset in ((tasks[1], 6), (tasks[2], 5)):
        if fails:
            assert isinstance(task.exception(), DeliveryError)
        else:
            assert task.result().offset == offset


@pytest.mark.parametrize("cancelled", TICKS)
@pytest.mark.parametrize("granted", TICKS)
async def test_memory_granted_and_the_waiter_cancelled(granted: int, cancelled: int) -> None:
    async with running(buffer_memory=1000, batch_size=1000) as (cluster, producer):
        pool = core_of(producer).accumulator.pool
        assert pool.allocate(1000)

        def grant() -> None:
            pool.deallocate(1000)
            parts_of(producer).alarm.ring()

        first = asyncio.create_task(producer.enqueue("t", b"first" + bytes(700)))
        await asyncio.sleep(0)
        second = asyncio.create_task(producer.enqueue("t", b"second" + bytes(700)))
        await asyncio.gather(at_tick(granted, grant), at_tick(cancelled, first.cancel))
        assert (await (await second)).offset in (0, 1)
        await asyncio.wait([first])
        await producer.flush()
        there = [(value or b"").rstrip(b"\0") for value in cluster.values("t")]
        # Placed before it was cancelled, it is in the log though nobody was told; withdrawn, it never will be.
        assert there in ([b"second"], [b"first", b"second"])
        if not first.cancelled():
            assert first.result().result().offset == 0
        assert all_memory_free(producer)


async def test_a_cancelled_waiter_hands_its_turn_on() -> None:
    """The large one at the head goes, and what it held up proceeds though no memory was freed."""
    async with running(buffer_memory=30_000, batch_size=1000, max_request_size=30_000) as (cluster, producer):
        gate = asyncio.Event()
        cluster.broker.script(ApiKey.PRODUCE, after(gate))
        _ = producer.send("t", b"holds memory until the gate opens")
        large = asyncio.create_task(producer.enqueue("t", bytes(29_500)))
        await asyncio.sleep(0)
        small = [asyncio.create_task(producer.enqueue("t", b"small")) for _ in range(10)]
        await cluster.broker.received(ApiKey.PRODUCE)
        assert not any(task.done() for task in small)
        large.cancel()
        await asyncio.wait(small)
        gate.set()
        await asyncio.gather(*[await task for task in small])
        assert len(cluster.values("t")) == 11


async def test_a_withdrawn_record_is_never_in_the_log() -> None:
    async with running(buffer_memory=1000, batch_size=1000) as (cluster, producer):
        gate = asyncio.Event()
        cluster.broker.script(ApiKey.PRODUCE, after(gate))
        first = producer.send("t", bytes(900))
        waiting = producer.send("t", b"unwanted" + bytes(700))
        awaiter = asyncio.create_task(end_of(waiting))
        enqueuer = asyncio.create_task(producer.enqueue("t", b"unwanted" + bytes(700)))
        await cluster.broker.received(ApiKey.PRODUCE)
        awaiter.cancel()
        enqueuer.cancel()
        await asyncio.wait([awaiter, enqueuer])
        await asyncio.sleep(0)
        assert waiting.outcome is Outcome.NOT_SENT
        gate.set()
        _ = await first
        await producer.flush()
        assert len(cluster.values("t")) == 1
        assert all_memory_free(producer)


async def test_a_parked_record_that_another_awaits_is_not_withdrawn() -> None:
    async with running(buffer_memory=1000, batch_size=1000) as (cluster, producer):
        gate = asyncio.Event()
        cluster.broker.script(ApiKey.PRODUCE, after(gate))
        _ = producer.send("t", bytes(900))
        waiting = producer.send("t", bytes(700))
        tasks = [asyncio.create_task(end_of(waiting)) for _ in range(2)]
        await cluster.broker.received(ApiKey.PRODUCE)
        tasks[0].cancel()
        gate.set()
        ended = await tasks[1]
        assert not isinstance(ended, DeliveryError)
        assert ended.offset == 1


async def test_one_cancelled_awaiter_harms_no_one() -> None:
    async with running() as (cluster, producer):
        gate = asyncio.Event()
        cluster.broker.script(ApiKey.PRODUCE, after(gate))
        deliveries = [producer.send("t", b"%d" % n) for n in range(10)]
        tasks = [asyncio.create_task(end_of(delivery)) for delivery in deliveries]
        await cluster.broker.received(ApiKey.PRODUCE)
        tasks[3].cancel()
        gate.set()
        await asyncio.wait(tasks)
        assert [task.cancelled() for task in tasks] == [n == 3 for n in range(10)]
        assert deliveries[3].result().offset == 3  # the record went on to its own end
        assert cluster.values("t") == [b"%d" % n for n in range(10)]


async def test_tasks_are_held_on_to() -> None:
    async with running(linger_ms=1) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, drop(), error(ErrorCode.NOT_ENOUGH_REPLICAS))
        done = asyncio.create_task(end_of(producer.send("t", b"v")))
        waiting = asyncio.create_task(producer.enqueue("t", b"w", partition=0))
        while not (done.done() and waiting.done()):
            gc.collect(0)
            gc.collect(1)
            await asyncio.sleep(0)
        gc.collect()
        assert not isinstance(done.result(), DeliveryError)


async def test_an_error_shared_by_many_has_a_traceback_for_each() -> None:
    async with running(batch_size=100_000, linger_ms=20) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        deliveries = [producer.send("t", b"v") for _ in range(2000)]
        ended = await asyncio.gather(*deliveries, return_exceptions=True)
        assert all(isinstance(one, DeliveryError) for one in ended)
        assert max(len(traceback.extract_tb(one.__traceback__)) for one in ended if isinstance(one, Exception)) < 5
        for _ in range(50):
            assert len(traceback.extract_tb((await _caught(deliveries[0])).__traceback__)) < 5


async def _caught(delivery: Delivery) -> DeliveryError:
    try:
        _ = await delivery
    except DeliveryError as raised:
        return raised
    raise AssertionError("it did not fail")


async def test_callbacks_run_in_order_and_what_they_raise_spoils_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with running(linger_ms=5) as (_, producer):
        called: list[int] = []

        def remember(number: int) -> Callable[[Delivery], None]:
            def callback(delivery: Delivery) -> None:
                called.append(number)
                if number == 2:
                    raise RuntimeError("a callback's own affair")

            return callback

        deliveries = [producer.send("t", b"v") for _ in range(5)]
        for number, delivery in reversed(list(enumerate(deliveries))):
            delivery.add_done_callback(remember(number))
        await producer.flush()
        assert called == [0, 1, 2, 3, 4]
        assert all(delivery.result() for delivery in deliveries)
        assert "a callback's own affair" in caplog.text


async def test_callbacks_that_send_flush_and_close() -> None:
    async with running() as (cluster, producer):
        tasks: list[asyncio.Task[Any]] = []
        sent: list[Delivery] = []
        closing = asyncio.Event()

        def again(delivery: Delivery) -> None:
            if len(sent) < 5:
                sent.append(producer.send("t", b"%d" % len(sent)))
                sent[-1].add_done_callback(again)
                with pytest.raises(IllegalStateException, match="from within"):
                    tasks.append(asyncio.ensure_future(producer.flush()))
            else:
                tasks.append(asyncio.ensure_future(producer.close()))
                closing.set()

        producer.send("t", b"first").add_done_callback(again)
        async with asyncio.timeout(5):
            await closing.wait()
            await asyncio.gather(*tasks)
        assert cluster.values("t") == [b"first", b"0", b"1", b"2", b"3", b"4"]


async def test_callbacks_that_send_while_everything_is_aborted() -> None:
    async with running() as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, never())
        refused: list[BaseException] = []

        def again(delivery: Delivery) -> None:
            try:
                _ = producer.send("t", b"again")
            except IllegalStateException as raised:
                refused.append(raised)

        for _ in range(20):
            producer.send("t", b"v").add_done_callback(again)
            producer.send("t", b"v", partition=99).add_done_callback(again)
        await producer.close(timeout=0)
        assert len(refused) == 40


class Stop(BaseException):
    """Not an Exception, as KeyboardInterrupt is none."""


async def test_a_base_exception_in_a_callback_reaches_the_loop_and_spoils_no_delivery() -> None:
    async with running(linger_ms=5) as (_, producer):
        reported: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))

        def stop(delivery: Delivery) -> None:
            raise Stop

        deliveries = [producer.send("t", b"v") for _ in range(3)]
        deliveries[1].add_done_callback(stop)
        await producer.flush()
        await asyncio.sleep(0)
        assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2]
        assert [type(one) for one in reported] == [Stop]


@pytest.mark.parametrize("seed", range(30))
async def test_send_racing_close(seed: int) -> None:
    """However they meet, every delivery ends, and what is said to be delivered is in the log, once and in order."""
    chance = random.Random(seed)
    for _ in range(5):
        async with ScriptedCluster() as cluster:
            cluster.create_topic("t", 2)
            cluster.broker.script(
                ApiKey.PRODUCE, *[chance.choice([answer, drop(), drop(appended=True)]) for _ in range(4)]
            )
            memory = chance.choice([2000, 1 << 20])
            producer = make_producer(
                cluster.bootstrap_servers,
                linger_ms=chance.choice([0, 1]),
                buffer_memory=memory,
                batch_size=500,
                max_request_size=1500,
            )
            await producer.start()
            deliveries: dict[bytes, Delivery] = {}
            withdrawn: list[DeliveryError] = []

            async def work(
                name: int,
                producer: KafkaProducer = producer,
                deliveries: dict[bytes, Delivery] = deliveries,
                withdrawn: list[DeliveryError] = withdrawn,
            ) -> None:
                for number in range(30):
                    value = b"%d-%d" % (name, number)
                    try:
                        if name % 2:
                            deliveries[value] = producer.send("t", value, partition=name % 2)
                        else:
                            deliveries[value] = await producer.enqueue("t", value, partition=name % 2)
                    except IllegalStateException:
                        return
                    except DeliveryError as raised:
                        withdrawn.append(raised)
                        return
                    for _ in range(chance.randrange(3)):
                        await asyncio.sleep(0)

            workers = [asyncio.create_task(work(name)) for name in range(4)]
            for _ in range(chance.randrange(60)):
                await asyncio.sleep(0)
            if chance.random() < 0.3:
                await asyncio.sleep(0.003)
            await producer.close(timeout=chance.choice([None, 0, 0.001]))
            assert all(delivery.done() for delivery in deliveries.values())
            await asyncio.gather(*workers)
            assert all(delivery.done() for delivery in deliveries.values())
            assert all_memory_free(producer)
            log = [value for partition in range(2) for value in cluster.values("t", partition)]
            assert len(set(log)) == len(log)
            for value, delivery in deliveries.items():
                if delivery.outcome is None:
                    assert value in log
                elif delivery.outcome is Outcome.NOT_SENT:
                    assert value not in log
            for name in range(4):
                mine = [value for value in log if (value or b"").startswith(b"%d-" % name)]
                assert mine == sorted(mine, key=lambda v: int((v or b"").split(b"-")[1]))
            assert all(one.outcome is Outcome.NOT_SENT for one in withdrawn)


# Bugs: a task that dies takes nothing with it in silence


def functions(*modules: str) -> Iterator[CodeType]:
    """The code of every function of these modules."""
    for name in modules:
        module = sys.modules[name]
        for thing in vars(module).values():
            if getattr(thing, "__module__", None) != name:
                continue
            for function in vars(thing).values() if isinstance(thing, type) else (thing,):
                code = getattr(getattr(function, "fget", function), "__code__", None)
                if isinstance(code, CodeType) and code.co_filename == module.__file__:
                    yield code


INTERPRETED = (
    "aioproducer.producer.sender.sender",
    "aioproducer.producer.sender.sender_pass",
    "aioproducer.producer.exchange.batch_completer",
    "aioproducer.producer.scheduling.drain",
    "aioproducer.producer.scheduling.readiness",
    "aioproducer.producer.idempotence.sequences",
    "aioproducer.producer.exchange.produce_exchange",
    "aioproducer.producer.exchange.produce_request",
    "aioproducer.producer.exchange.completion",
    "aioproducer.producer.parking.parking_lot",
    "aioproducer.producer.parking.parked_record",
    "aioproducer.producer.sender.metadata_waits",
    "aioproducer.producer.scheduling.deadlines",
    "aioproducer.producer.scheduling.schedule",
    "aioproducer.producer.sender.alarm",
    "aioproducer.producer.diagnosis.failure_log",
    "aioproducer.producer.sender.producer_id",
    "aioproducer.producer.sender.obstacles",
    "aioproducer.producer.diagnosis.explanation",
    "aioproducer.producer.diagnosis.ledger",
    "aioproducer.producer.diagnosis.value_history",
    "aioproducer.producer.scheduling.wait_history",
    "aioproducer.producer.scheduling.topic_directory",
    "aioproducer.producer.windows.in_flight_windows",
    "aioproducer.net.client",
    "aioproducer.net.connection.connection",
    "aioproducer.net.connection.in_flight_request",
    "aioproducer.net.broker_link",
    "aioproducer.net.link_task",
    "aioproducer.net.metadata.metadata",
    "aioproducer.net.metadata.cluster_changes",
)


class Bug(Exception):
    """Something that nobody has foreseen."""


class Planted:
    """Raises a Bug, once, where the line is about to be run: a line's number, or 0 for a function's first."""

    def __init__(self, code: CodeType, line: int = 0) -> None:
        self.code = code
        self.line = line
        self.raised = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self.trace if frame.f_code is self.code and not self.raised else None

    def trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line" and not self.raised and self.line in (0, frame.f_lineno):
            self.raised = True
            raise Bug(f"{self.code.co_qualname}, line {frame.f_lineno}")
        return self.trace


async def everyday(bug: Planted) -> tuple[list[Any], list[BaseException]]:
    """Sends with everything that may happen, with a bug in the way; how deliveries ended, and what calls raised."""
    raised: list[BaseException] = []
    deliveries: dict[bytes, Delivery] = {}
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: raised.append(context.get("exception") or KafkaError("?")))

    async def enqueue(producer: KafkaProducer, value: bytes, partition: int) -> None:
        try:
            deliveries[value] = await producer.enqueue("t", value, partition=partition)
        except (Bug, KafkaError) as direct:
            raised.append(direct)

    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0], [1]])
        cluster.brokers[0].script(ApiKey.PRODUCE, answer, error(ErrorCode.NOT_LEADER_OR_FOLLOWER), drop())
        cluster.brokers[1].script(ApiKey.PRODUCE, answer, error(ErrorCode.INVALID_RECORD))
        producer = make_producer(cluster.bootstrap_servers, buffer_memory=10_000, batch_size=1000)
        sys.settrace(bug)
        try:
            await producer.start()
            waiting = [asyncio.create_task(enqueue(producer, b"e%d" % n + bytes(600), n % 2)) for n in range(8)]
            for n in range(8):
                value = b"s%d" % n + bytes(600)
                deliveries[value] = producer.send("t", value, partition=n % 2)
                await asyncio.sleep(0)
            await asyncio.wait(waiting)
            cluster.move_leader("t", 0, 1)
            deliveries[b"moved"] = producer.send("t", b"moved", partition=0)
        except (Bug, KafkaError) as direct:
            raised.append(direct)
        ended = await asyncio.gather(*deliveries.values(), return_exceptions=True)
        sys.settrace(None)
        fatal = core_of(producer).sender.fatal if producer._affinity.loop is not None else None
        if bug.raised and fatal is not None:
            with pytest.raises(IllegalStateException, match="Bug"):
                _ = producer.send("t", b"refused")
            assert isinstance(fatal.__cause__, Bug)
        await producer.close(timeout=0.2)
        log = [value for partition in range(2) for value in cluster.values("t", partition)]
        for value, delivery in deliveries.items():
            assert delivery.done()
            assert delivery.outcome is Outcome.UNKNOWN or (value in log) == (delivery.outcome is None), value
    return ended, raised


PLANTABLE = {
    f"{code.co_qualname}": code
    for code in functions(*INTERPRETED)
    if not code.co_name.startswith("<") and code.co_name not in ("__repr__", "__str__")
}
TOLERATED = "raised in the caller's own call, or by a callback of the loop, which reports it"


@pytest.mark.parametrize("function", PLANTABLE)
async def test_a_bug_anywhere_ends_every_delivery_with_its_cause(
    function: str, caplog: pytest.LogCaptureFixture
) -> None:
    bug = Planted(PLANTABLE[function])
    async with asyncio.timeout(20):
        ended, raised = await everyday(bug)
    if not bug.raised:
        return
    failed = [one for one in ended if isinstance(one, BaseException)]
    # Nowhere does it vanish: it ends deliveries, is raised to a caller, or told by the loop or in the log.
    told = [one for one in [*failed, *raised] if "Bug" in repr(one) or isinstance(one.__cause__, Bug)]
    assert told or "Bug" in caplog.text, (function, ended, raised)


# Where a batch changes hands: a bug between any two of these lines may neither lose it nor end it twice.
HANDOVERS = (
    "BatchCompleter.ended",
    "BatchCompleter._retry",
    "BatchCompleter._fail",
    "BatchCompleter._end",
    "SenderPass.run",
    "ProduceExchange.send",
    "ProduceExchange.answered",
    "ProduceExchange.failed",
    "ProduceExchange._take_answer",
    "Connection._answer",
    "Connection.close",
)


@interpreted_only
@pytest.mark.parametrize("function", HANDOVERS)
async def test_a_bug_at_any_line_where_batches_change_hands(function: str) -> None:
    code = PLANTABLE[function]
    for line in sorted({line for _, _, line in code.co_lines() if line is not None} - {code.co_firstlineno}):
        async with asyncio.timeout(20):
            ended, raised = await everyday(bug := Planted(code, line))
        assert len(ended) == 17 or raised, (function, line)
        assert bug.raised or not raised, (function, line, raised)


async def test_a_task_cancelled_from_outside_is_no_silent_end() -> None:
    async with running() as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, never())
        delivery = producer.send("t", b"v")
        parked = producer.send("t", b"w", partition=99)
        waiting = asyncio.create_task(producer.enqueue("t", b"x", partition=99))
        await cluster.broker.received(ApiKey.PRODUCE)
        for task in asyncio.all_tasks():
            if task.get_name() == "aioproducer sender":
                task.cancel()
        ended = [await end_of(delivery), await end_of(parked)]
        assert [one.outcome for one in ended if isinstance(one, DeliveryError)] == [Outcome.UNKNOWN, Outcome.NOT_SENT]
        assert all("cancelled from outside" in str(one) for one in ended)
        with pytest.raises(DeliveryError, match="cancelled from outside"):
            _ = await waiting
        assert all_memory_free(producer)
        await producer.flush()


# Time, years of it


@virtual
async def test_minutes_without_a_broker(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """With Kafka's defaults: every delivery ends in time, connections are tried with patience, the log stays short."""
    caplog.set_level(logging.INFO)
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", 2)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"before")
            await cluster.stop_node(0)
            await cluster.stop_node(1)
            loop = asyncio.get_running_loop()
            world.attempts = 0
            began = loop.time()
            for turn in range(2):
                sent = loop.time()
                ended = await end_of(producer.send("t", b"during"))
                assert isinstance(ended, TimeoutException)
                assert loop.time() - sent == pytest.approx(120, abs=0.1)
                await asyncio.sleep(began + 150 * (turn + 1) - loop.time())
            # At most one attempt a second and address, jitter included: two brokers, and two bootstrap servers.
            assert world.attempts < 300 / 0.8 * 4
            await cluster.start_node(0)
            await cluster.start_node(1)
            assert (await producer.send("t", b"after", partition=0)).offset >= 0
    mine = [record for record in caplog.records if record.name.startswith("aioproducer.")]
    assert len([record for record in mine if "link_task" in record.name]) <= 8, [r.getMessage() for r in mine]
    assert len(mine) <= 12


@virtual
async def test_an_unused_connection_is_closed_without_a_word_and_opened_when_needed(
    world: World,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config: dict[str, Any] = {"metadata_max_age_ms": 100 * 3600_000, "connections_max_idle_ms": 60_000}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"v")
            await asyncio.sleep(3600)
            assert not cluster.broker.connections
            attempts = world.attempts
            await asyncio.sleep(3600)
            assert world.attempts == attempts
            assert (await producer.send("t", b"w")).offset == 1
            for _ in range(20):  # one in use is left alone
                await asyncio.sleep(50)
                _ = await producer.send("t", b"x")
            assert world.attempts == attempts + 1
    assert not [record for record in caplog.records if record.name.startswith("aioproducer.net")]


@virtual
async def test_a_topic_with_records_waiting_is_never_forgotten(world: World) -> None:
    """metadata.max.idle.ms is shorter here than the records live."""
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0]])
        config: dict[str, Any] = {"metadata_max_idle_ms": 5000, "delivery_timeout_ms": 600_000}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"0")
            await cluster.stop_node(0)
            waiting = producer.send("t", b"1")
            await asyncio.sleep(300)
            cluster.move_leader("t", 0, 1)
            assert (await waiting).offset == 1


@virtual
async def test_a_topic_long_unused_is_forgotten_and_found_again(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.create_topic("u", 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"v")
            for _ in range(30):
                await asyncio.sleep(60)
                _ = await producer.send("u", b"v")
            asked = [topic.name for topic in cluster.broker.sent(ApiKey.METADATA)[-1].topics]
            assert asked == ["u"]
            assert (await producer.send("t", b"w")).offset == 1
            assert [batch.base_sequence for batch in cluster.log("t").batches()] == [0, 1]


@virtual
async def test_a_bootstrap_server_behind_a_firewall_does_not_keep_us_from_the_next(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        world.silent = {"10.9.9.1", "10.9.9.2"}
        servers = f"10.9.9.1:1,10.9.9.2:2,{cluster.bootstrap_servers}"
        began = asyncio.get_running_loop().time()
        async with KafkaProducer(bootstrap_servers=servers) as producer:
            assert (await producer.send("t", b"v")).offset == 0
            assert asyncio.get_running_loop().time() - began < 2 * HEAD_START + 0.1
            assert world.attempts <= 2 + 2  # what is silent is tried once; the broker as bootstrap server and as itself


@virtual
async def test_an_outage_of_minutes_loses_nothing_that_still_has_time(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config: dict[str, Any] = {"delivery_timeout_ms": 3600_000, "batch_size": 100}
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"first")
            await cluster.stop_node(0)
            deliveries = [producer.send("t", b"%d" % n + bytes(60)) for n in range(20)]
            await asyncio.sleep(240)
            assert not any(delivery.done() for delivery in deliveries)
            await cluster.start_node(0)
            assert [(await delivery).offset for delivery in deliveries] == list(range(1, 21))


@virtual
async def test_a_request_nobody_answers_with_default_times(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, never(appended=True), never())
        began = asyncio.get_running_loop().time()
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            assert (await producer.send("t", b"v")).offset == 0
            assert 60 <= asyncio.get_running_loop().time() - began < 63
        assert len(cluster.values("t")) == 1


@virtual
async def test_metadata_is_requested_with_a_back_off_while_a_partition_has_no_leader(world: World) -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0]])
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"v")
            await cluster.stop_node(0)
            asked = cluster.brokers[1].count(ApiKey.METADATA)
            assert isinstance(await end_of(producer.send("t", b"w")), TimeoutException)
            assert cluster.brokers[1].count(ApiKey.METADATA) - asked < 120 / 0.8 + 10


@virtual
async def test_a_partition_without_a_leader_has_no_other_topic_requested(world: World) -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0]])
        for number in range(5):
            cluster.create_topic(f"other-{number}", assignments=[[1]])
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for topic in ("t", *(f"other-{number}" for number in range(5))):
                _ = await producer.send(topic, b"v")
            await cluster.stop_node(0)
            ending = asyncio.ensure_future(end_of(producer.send("t", b"w")))
            await asyncio.sleep(5)  # what the lost connection asks for
            before = len(cluster.brokers[1].sent(ApiKey.METADATA))
            await asyncio.sleep(60)
            requests = cluster.brokers[1].sent(ApiKey.METADATA)[before:]
            assert len(requests) > 20
            assert {topic.name for request in requests for topic in request.topics} == {"t"}
            assert isinstance(await ending, TimeoutException)


# Idle is idle


async def passes_during(producer: KafkaProducer, seconds: float) -> int:
    before = parts_of(producer).sender_pass.count
    await asyncio.sleep(seconds)
    return parts_of(producer).sender_pass.count - before


async def test_an_idle_producer_does_nothing() -> None:
    async with running() as (_, producer):
        _ = await producer.send("t", b"v")
        await passes_during(producer, 0.05)  # the bootstrap connection comes to rest
        assert await passes_during(producer, 0.05) == 0


async def test_cancelled_waits_leave_nothing_spinning() -> None:
    async with running(buffer_memory=1000, batch_size=1000) as (cluster, producer):
        cluster.broker.always(ApiKey.PRODUCE, never())
        _ = producer.send("t", bytes(900))
        await cluster.broker.received(ApiKey.PRODUCE)
        tasks = [asyncio.create_task(producer.enqueue("t", bytes(900))) for _ in range(20)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await asyncio.sleep(0)
        assert await passes_during(producer, 0.05) <= 1
        await producer.close(timeout=0)


async def test_an_outage_costs_little() -> None:
    async with running(reconnect_backoff_ms=20, reconnect_backoff_max_ms=20, retry_backoff_ms=20) as (
        cluster,
        producer,
    ):
        await cluster.stop_node(0)
        _ = [producer.send("t", b"%d" % n) for n in range(100)]
        assert await passes_during(producer, 0.2) < 100
        await producer.close(timeout=0)


# Producers


async def test_every_record_has_its_own_timestamp_in_its_metadata() -> None:
    async with running(linger_ms=20) as (_, producer):
        deliveries = [producer.send("t", b"v", timestamp_ms=stamp) for stamp in (1000, 3000, 2000, 500)]
        assert [(await delivery).timestamp_ms for delivery in deliveries] == [1000, 3000, 2000, 500]


async def test_after_the_last_sequence_comes_zero() -> None:
    async with running() as (cluster, producer):
        queue = core_of(producer).accumulator.topics["t"].queues[0]
        sequences_of(queue).next_sequence = 2**31 - 2
        cluster.broker.script(ApiKey.PRODUCE, answer, drop(appended=True), drop())
        for n in range(5):
            assert (await producer.send("t", b"%d" % n)).offset == n
        sequences = [batch.base_sequence for batch in cluster.log("t").batches()]
        assert sequences == [2**31 - 2, 2**31 - 1, 0, 1, 2]


async def test_a_topic_briefly_missing_from_metadata_resets_nothing() -> None:
    async with running(retry_backoff_ms=1) as (cluster, producer):
        _ = await producer.send("t", b"0")
        seen = cluster.broker.count(ApiKey.METADATA)
        cluster.broker.script(ApiKey.METADATA, *[error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)] * 3)
        parts_of(producer).client.request_update()
        await cluster.broker.received(ApiKey.METADATA, seen + 2)
        for n in range(1, 4):
            assert (await producer.send("t", b"%d" % n)).offset == n
        batches = list(cluster.log("t").batches())
        assert [(batch.producer_epoch, batch.base_sequence) for batch in batches] == [(0, n) for n in range(4)]


async def test_a_partition_briefly_missing_from_metadata_goes_on_with_its_sequences() -> None:
    """Of a broker without topic ids that is behind. Were they to begin anew, new batches would be taken for old ones:
    acknowledged, and not in the log."""
    old = {ApiKey.METADATA: 9, ApiKey.PRODUCE: 9}
    async with ScriptedCluster(newest_versions=old) as cluster:
        cluster.create_topic("t", 2)
        async with make_producer(cluster.bootstrap_servers) as producer:

            async def partitions(count: int) -> None:
                while len(await producer.partitions_for("t")) != count:
                    parts_of(producer).client.request_update()
                    await parts_of(producer).client.changes.next()

            _ = await producer.send("t", b"0", partition=1)
            cluster.broker.always(ApiKey.METADATA, edited(lambda response: response.topics[0].partitions.pop()))
            await partitions(1)
            cluster.broker.always(ApiKey.METADATA, None)
            await partitions(2)
            assert (await producer.send("t", b"1", partition=1)).offset == 1
        assert cluster.values("t", 1) == [b"0", b"1"]


async def test_batches_under_way_keep_their_epoch_when_it_is_bumped() -> None:
    """The second of four on the wire is refused for good: those behind it are out of order, and go out again."""
    async with running(batch_size=0) as (cluster, producer):
        gate = asyncio.Event()
        cluster.broker.script(ApiKey.PRODUCE, answer, after(gate), error(ErrorCode.INVALID_RECORD))
        deliveries = [producer.send("t", b"%d" % n) for n in range(5)]
        await cluster.broker.received(ApiKey.PRODUCE, 2)
        gate.set()
        ended = [await end_of(delivery) for delivery in deliveries]
        assert [isinstance(one, DeliveryError) for one in ended] == [False, False, True, False, False]
        assert cluster.values("t") == [b"0", b"1", b"3", b"4"]
        batches = list(cluster.log("t").batches())
        assert [(batch.producer_epoch, batch.base_sequence) for batch in batches] == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize(("offset", "believed"), [(-1, True), (-2, False), (-(2**63), False)])
async def test_an_offset_that_is_none_is_no_success(offset: int, believed: bool) -> None:
    """Of a batch that is there already, a broker may not know where: it then answers -1."""

    def nonsense(response: Any) -> None:
        response.responses[0].partition_responses[0].base_offset = offset

    async with running(retry_backoff_ms=1) as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, edited(nonsense))
        metadata = await producer.send("t", b"0")
        assert metadata.offset == (-1 if believed else 0)
        assert cluster.values("t") == [b"0"]
        assert len(cluster.broker.sent(ApiKey.PRODUCE)) == (1 if believed else 2)


@pytest.mark.parametrize("appended", [True, False])
@virtual
async def test_a_record_after_a_batch_given_up_is_not_taken_for_its_duplicate(world: World, appended: bool) -> None:
    """Were its sequence used again, the broker would take the next record for a duplicate, and say it had it."""
    async with running(request_timeout_ms=1000, delivery_timeout_ms=1000) as (cluster, producer):
        _ = await producer.send("t", b"first")
        cluster.broker.script(ApiKey.PRODUCE, never(appended=appended))
        lost = await end_of(producer.send("t", b"given up"))
        assert isinstance(lost, TimeoutException)
        assert isinstance(lost, DeliveryError)
        assert lost.outcome is Outcome.UNKNOWN
        metadata = await producer.send("t", b"next")
        expected = [b"first", *([b"given up"] if appended else []), b"next"]
        assert cluster.values("t") == expected
        assert metadata.offset == len(expected) - 1


async def test_a_batch_that_expires_in_flight_arrives_as_it_was() -> None:
    """What was handed to the socket is nobody else's memory, however often buffers are used again."""
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0], [1]])
        config = {"request_timeout_ms": 150, "delivery_timeout_ms": 150, "send_buffer_bytes": 4096}
        config |= {"batch_size": 1_000_000, "max_request_size": 1_100_000, "max_block_ms": 5000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"v", partition=0)
            _ = await producer.send("t", b"v", partition=1)
            gate = asyncio.Event()
            seen = cluster.brokers[0].count(ApiKey.PRODUCE)
            cluster.brokers[0].script(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS), after(gate))
            stuck = [producer.send("t", bytes([n]) * 900_000, partition=0) for n in range(1, 4)]
            ended = [await end_of(delivery) for delivery in stuck]
            assert all(isinstance(one, TimeoutException) for one in ended)
            for n in range(10):
                assert (await producer.send("t", bytes([100 + n]) * 30_000, partition=1)).offset == 1 + n
            gate.set()
            _ = await producer.send("t", b"the end", partition=0)
        for request in cluster.brokers[0].sent(ApiKey.PRODUCE)[seen:]:
            for data in request.topic_data[0].partition_data:
                for batch in read_batches(data.records):
                    batch.verify()
                    for record in batch.records():
                        value = record.value or b""
                        assert value == b"the end" or (value == value[:1] * 900_000 and value[0] < 100)


async def test_a_batch_is_at_most_once_in_a_log_that_was_written_behind_our_back() -> None:
    """Answers that lie: REQUEST_TIMED_OUT though it was appended, over and over."""
    async with running() as (cluster, producer):
        cluster.broker.script(ApiKey.PRODUCE, *[error(ErrorCode.REQUEST_TIMED_OUT, appended=True)] * 6)
        deliveries = [producer.send("t", b"%d" % n) for n in range(3)]
        await producer.flush()
        assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2]
        assert cluster.values("t") == [b"0", b"1", b"2"]


# Hostile or broken bytes, whatever was asked

HOSTILE: dict[str, Step] = {
    "length -1": raw(b"\xff\xff\xff\xff"),
    "length 0": raw(b"\0\0\0\0"),
    "length 2^31-1": raw(b"\x7f\xff\xff\xff"),
    "TLS alert": raw(bytes.fromhex("15030300020250")),
    "garbage": raw(b"\0\0\0\x10" + b"garbage!" * 2),
    "counts beyond the bytes left": raw(b"\0\0\0\x0c\0\0\0\x01" + b"\x7f\xff\xff\xff" * 2),
    "wrong correlation id": wrong_correlation_id(),
    "half a frame": partial(),
    "crumbs": crumbs(3),
    "too much": with_appendix(),
    "dropped": drop(),
}


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("api", [ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.INIT_PRODUCER_ID])
async def test_hostile_bytes_are_got_over(api: ApiKey, hostile: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(api, HOSTILE[hostile], HOSTILE[hostile])
        async with make_producer(cluster.bootstrap_servers) as producer:
            assert (await producer.send("t", b"v")).offset == 0
            assert core_of(producer).sender.fatal is None
    assert not [record for record in caplog.records if record.name != "asyncio"]
