"""Tasks that await ``send`` are held up, first come, first served, and none of them fails."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from aioproducer import Delivery, KafkaProducer, Outcome, wait_all
from aioproducer.errors import BufferExhaustedException, KafkaError, TransactionAbortableException
from aioproducer.producer.parking.parking_lot import TRIAL
from aioproducer.protocol.api_key import ApiKey
from tests.support.compiled import interpreted_only
from tests.support.counted_calls import CLIENT, CallsIn
from tests.support.inside import sender_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer, turns
from tests.support.scripted_broker import Held, ScriptedCluster
from tests.support.transactional import PROTOCOLS, a_cluster, committed, transactional
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(120)]

MIB = 1 << 20
LITTLE: dict[str, Any] = {"buffer_memory": 4000, "batch_size": 1000, "parked_memory": 0}
FILLING = bytes(2000)
"""A record after which there is no memory for another one."""


async def ends_of_many(tasks: int, size: int, **config: Any) -> Counter[str]:
    """How so many tasks end, each of which awaits one record; the producer has just been started."""
    value, ends = bytes(size), Counter[str]()

    async def send(producer: KafkaProducer) -> None:
        ends[type(await end_of(producer.send("t", value))).__name__] += 1

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 4)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **config) as producer:
            await asyncio.gather(*(send(producer) for _ in range(tasks)))
            assert all_memory_free(producer)
    return ends


@virtual
async def test_more_records_than_memory_are_all_delivered(world: World) -> None:
    assert await ends_of_many(40_000, 1000, buffer_memory=MIB) == {"RecordMetadata": 40_000}


@virtual
async def test_a_hundred_thousand_tasks_are_all_served(world: World) -> None:
    assert await ends_of_many(100_000, 1000, buffer_memory=32 * MIB) == {"RecordMetadata": 100_000}


@virtual
async def test_records_that_wait_for_metadata_need_no_room(world: World) -> None:
    assert await ends_of_many(20_000, 100) == {"RecordMetadata": 20_000}


# With no memory left


class Full:
    """A producer whose memory is taken by a record that the broker has and does not acknowledge yet."""

    def __init__(self, cluster: ScriptedCluster, producer: KafkaProducer) -> None:
        self.cluster = cluster
        self.producer = producer
        self.held = Held()
        self.first: Delivery

    async def fill(self) -> None:
        self.cluster.broker.script(ApiKey.PRODUCE, self.held)
        self.first = self.producer.send("t", FILLING, partition=0)
        await self.cluster.broker.received(ApiKey.PRODUCE)

    def send(self, value: bytes, **more: Any) -> Delivery:
        return self.producer.send("t", value, **{"partition": 0, **more})

    def task(self, value: bytes, **more: Any) -> asyncio.Task[Any]:
        """Awaits a record of its own."""

        async def send() -> Any:
            return await self.send(value, **more)

        return asyncio.create_task(send())

    def values(self) -> list[bytes | None]:
        """All that is in the log of partition 0 behind the first record."""
        return [value for value in self.cluster.values("t") if value != FILLING]


@asynccontextmanager
async def full(**config: Any) -> AsyncIterator[Full]:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 2)
        async with make_producer(cluster.bootstrap_servers, **{**LITTLE, **config}) as producer:
            await producer.partitions_for("t")
            here = Full(cluster, producer)
            await here.fill()
            yield here
            here.held.release()


def numbered(numbers: range) -> list[bytes]:
    return [b"%d" % number + bytes(900) for number in numbers]


@virtual
async def test_tasks_are_served_in_the_order_in_which_they_came(world: World) -> None:
    async with full() as here:
        tasks = [here.task(value) for value in numbered(range(20))]
        await turns(1)
        here.held.release()
        offsets = [(await task).offset for task in tasks]
    assert offsets == list(range(1, 21))
    assert here.values() == numbered(range(20))


@virtual
async def test_a_later_record_that_would_fit_does_not_overtake_a_task(world: World) -> None:
    async with full(parked_memory=MIB) as here:
        large = here.task(bytes(3500))
        await turns(1)
        assert here.producer.metrics()["buffer-available-bytes"] > 200
        small: list[Any] = [here.send(b"unawaited"), asyncio.ensure_future(here.send(b"awaited"))]
        here.held.release()
        assert (await large).offset == 1
        assert [(await one).offset for one in small] == [2, 3]


@virtual
async def test_the_records_of_one_task_stay_in_order_whichever_it_awaits(world: World) -> None:
    async with full(parked_memory=MIB) as here:

        async def send() -> list[Any]:
            first, second = here.send(b"1" + bytes(900)), here.send(b"2" + bytes(900))
            third = await here.send(b"3" + bytes(900))
            return [await first, await second, third, await here.send(b"4")]

        sending = asyncio.create_task(send())
        await turns(TRIAL + 1)
        here.held.release()
        assert [metadata.offset for metadata in await sending] == [1, 2, 3, 4]


async def group_of_tasks(deliveries: list[Delivery]) -> None:
    async with asyncio.TaskGroup() as group:
        for delivery in deliveries:
            group.create_task(delivery)  # type: ignore[arg-type]


async def group_of_waits(deliveries: list[Delivery]) -> None:
    within = vars(asyncio)["wait_for"]  # users may use it
    async with asyncio.TaskGroup() as group:
        for delivery in deliveries:
            group.create_task(within(asyncio.shield(delivery), 60))


async def anyio_group(deliveries: list[Delivery]) -> None:
    async def wait(delivery: Delivery) -> None:
        with anyio.fail_after(60):
            await delivery

    async with anyio.create_task_group() as group:
        for delivery in deliveries:
            group.start_soon(wait, delivery)


async def one_after_the_other(deliveries: list[Delivery]) -> None:
    for delivery in [asyncio.ensure_future(delivery) for delivery in deliveries]:
        await delivery


async def as_completed(deliveries: list[Delivery]) -> None:
    for one in asyncio.as_completed(deliveries):
        await one


async def gathered(deliveries: list[Delivery]) -> None:
    await asyncio.gather(*deliveries)


async def gathered_waits(deliveries: list[Delivery]) -> None:
    within = vars(asyncio)["wait_for"]
    await asyncio.gather(*(within(delivery, 60) for delivery in deliveries))


WAYS = [
    group_of_tasks,
    group_of_waits,
    anyio_group,
    one_after_the_other,
    as_completed,
    gathered,
    gathered_waits,
    wait_all,
]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("way", WAYS)
@virtual
async def test_every_way_of_awaiting_deliveries_holds_their_records(
    world: World, way: Callable[[list[Delivery]], Coroutine[Any, Any, None]], *, known: bool
) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, **LITTLE) as producer:
            if known:
                await producer.partitions_for("t")
            deliveries = [producer.send("t", value) for value in numbered(range(50))]
            await way(deliveries)
            assert [delivery.result().offset for delivery in deliveries] == list(range(50))


@virtual
async def test_a_delivery_that_is_kept_and_not_awaited_fails_soon(world: World) -> None:
    async with full() as here:
        began = asyncio.get_running_loop().time()
        kept = here.send(b"kept")
        await turns(TRIAL + 1)
        assert asyncio.get_running_loop().time() - began < 0.001
        assert kept.outcome is Outcome.NOT_SENT
        with pytest.raises(BufferExhaustedException, match=r"await send\(\) or enqueue\(\)"):
            kept.result()


@virtual
async def test_a_loop_that_never_awaits_cannot_fill_the_memory(world: World, caplog: pytest.LogCaptureFixture) -> None:
    async with full() as here:
        for _ in range(100):
            _ = here.send(bytes(1000))
            assert here.producer.metrics()["parked-records"] == 1
    assert sum(vars(record)["kafka"]["records"] for record in caplog.records) == 100


# Too long, cancelled, closed


@virtual
async def test_a_task_waits_no_longer_than_max_block_ms(world: World) -> None:
    async with full(max_block_ms=2000) as here:
        began = asyncio.get_running_loop().time()
        with pytest.raises(BufferExhaustedException, match=r"within max\.block\.ms"):
            await here.send(bytes(900))
        assert asyncio.get_running_loop().time() - began == pytest.approx(2, abs=0.01)


@virtual
async def test_cancelling_tasks_takes_only_their_own_records_out(world: World) -> None:
    async with full() as here:
        tasks = [here.task(value) for value in numbered(range(60))]
        await turns(1)
        for task in tasks[::3]:
            task.cancel()
        await turns(2)
        here.held.release()
        ends: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(end, asyncio.CancelledError) for end in ends] == [number % 3 == 0 for number in range(60)]
    left = [value for number, value in enumerate(numbered(range(60))) if number % 3]
    assert here.values() == left
    assert [end.offset for number, end in enumerate(ends) if number % 3] == list(range(1, 41))


@interpreted_only
@pytest.mark.parametrize("deliveries", ["one", "many"])
@pytest.mark.parametrize("waits_for", ["memory", "metadata"])
@virtual
async def test_cancelling_costs_each_task_the_same_however_many_wait(
    world: World, deliveries: str, waits_for: str
) -> None:
    async def calls(count: int) -> float:
        async with full() as here:
            more = {"partition": 0 if waits_for == "memory" else 5}
            one = [here.send(b"v", **more)] if deliveries == "one" else []
            tasks = [asyncio.ensure_future(one[0]) if one else here.task(b"v", **more) for _ in range(count)]
            await turns(3)
            assert here.producer.metrics()["parked-records"] == (1 if one else count)
            counted = CallsIn(*CLIENT)
            with counted.counting():
                for task in tasks[::-1]:
                    task.cancel()
                await asyncio.wait(tasks)
                await turns(2)
            assert here.producer.metrics()["parked-records"] == 0
        gc.collect()
        return counted.count / count

    few = await calls(250)
    assert 0 < await calls(2000) < 1.2 * few + 5


@virtual
async def test_flush_waits_for_waiting_records(world: World) -> None:
    async with full() as here:
        task = here.task(bytes(900))
        await turns(1)
        flushing = asyncio.create_task(here.producer.flush())
        await asyncio.sleep(1)
        assert not flushing.done()
        here.held.release()
        await flushing
        assert (await task).offset == 1


@virtual
async def test_flush_does_not_keep_a_record_that_nobody_awaits_any_more(world: World) -> None:
    async with full() as here:
        task = here.task(b"withdrawn")
        await turns(1)
        flushing = asyncio.create_task(here.producer.flush())
        await turns(1)
        task.cancel()
        await asyncio.wait([task])
        here.held.release()
        await flushing
        assert here.values() == []


@virtual
async def test_close_delivers_waiting_records(world: World) -> None:
    async with full() as here:
        tasks = [here.task(value) for value in numbered(range(10))]
        await turns(1)
        closing = asyncio.create_task(here.producer.close())
        await asyncio.sleep(1)
        assert not closing.done()
        here.held.release()
        await closing
        assert [(await task).offset for task in tasks] == list(range(1, 11))


@pytest.mark.parametrize("timeout", [0, 3])
@virtual
async def test_a_close_that_times_out_fails_waiting_records(world: World, timeout: float) -> None:
    async with full() as here:
        tasks = [here.task(value) for value in numbered(range(10))]
        kept = here.send(b"on trial")
        await turns(1)
        began = asyncio.get_running_loop().time()
        await here.producer.close(timeout)
        assert asyncio.get_running_loop().time() - began == pytest.approx(timeout, abs=0.1)
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert {getattr(end, "outcome", None) for end in (*ends, kept)} == {Outcome.NOT_SENT}
        assert all_memory_free(here.producer)
    assert here.values() == []


@virtual
async def test_a_producer_that_fails_ends_all_waits(world: World) -> None:
    async with full() as here:
        tasks = [here.task(value) for value in numbered(range(3))]
        await turns(1)
        sender_of(here.producer).fail(KafkaError("of no use"))
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, KafkaError) for end in ends)


# Transactions


@asynccontextmanager
async def full_transaction(protocol: int) -> AsyncIterator[Full]:
    async with a_cluster(protocol) as cluster, transactional(cluster, **LITTLE) as producer:
        await producer.init_transactions()
        await producer.partitions_for("t")
        await producer.begin_transaction()
        here = Full(cluster, producer)
        await here.fill()
        yield here


@PROTOCOLS
@virtual
async def test_a_record_that_waits_belongs_to_the_transaction_in_which_it_was_sent(world: World, protocol: int) -> None:
    async with full_transaction(protocol) as here:
        tasks = [here.task(value) for value in numbered(range(5))]
        await turns(1)
        committing = asyncio.create_task(here.producer.commit_transaction())
        await asyncio.sleep(1)
        assert not committing.done()
        here.held.release()
        await committing
        assert [task.result().topic for task in tasks] == ["t"] * 5
        assert committed(here.cluster) == [FILLING, *numbered(range(5))]


@PROTOCOLS
@virtual
async def test_an_abort_withdraws_waiting_records(world: World, protocol: int) -> None:
    async with full_transaction(protocol) as here:
        tasks = [here.task(value) for value in numbered(range(5))]
        kept = here.send(b"on trial")
        await turns(1)
        aborting = asyncio.create_task(here.producer.abort_transaction())
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert {getattr(end, "outcome", None) for end in (*ends, kept)} == {Outcome.NOT_SENT}
        here.held.release()
        await aborting
        async with here.producer.transaction():
            await here.producer.send("t", b"next", partition=0)
        assert committed(here.cluster) == [b"next"]


@PROTOCOLS
@virtual
async def test_a_record_that_found_no_room_fails_its_transaction(world: World, protocol: int) -> None:
    async with full_transaction(protocol) as here:
        _ = here.send(b"nobody awaits it")
        await turns(TRIAL + 1)
        here.held.release()
        with pytest.raises(TransactionAbortableException, match="nobody awaits"):
            await here.producer.commit_transaction()
        await here.producer.abort_transaction()
        assert committed(here.cluster) == []
