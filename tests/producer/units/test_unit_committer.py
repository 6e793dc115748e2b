"""Outages that last longer than the units' time, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from aioproducer import DeliveryError, KafkaProducer, Outcome
from aioproducer.errors import RecordTooLargeException, TimeoutException
from aioproducer.protocol.api_key import ApiKey
from tests.support.scripted_broker import answer, never
from tests.support.transactional import a_cluster, committed, transactional
from tests.support.virtual_time import World, virtual


async def unit(producer: KafkaProducer[Any, Any], value: bytes, partition: int) -> DeliveryError | None:
    try:
        async with producer.unit() as one:
            await one.send("t", value, partition=partition)
    except DeliveryError as error:
        return error
    return None


@virtual
@pytest.mark.parametrize("seconds", [100, 200, 250, 300])
async def test_the_producer_goes_on_after_an_outage(world: World, seconds: int) -> None:
    """After delivery.timeout.ms and twice max.block.ms the units are told that they failed, while the abort goes on."""
    loop = asyncio.get_running_loop()
    times: dict[str, Any] = {"max_block_ms": 60_000, "delivery_timeout_ms": 120_000, "request_timeout_ms": 30_000}
    async with a_cluster(2, 1) as cluster, transactional(cluster, **times) as producer:
        await producer.init_transactions()
        assert await unit(producer, b"before", 0) is None
        world.hung_until = loop.time() + seconds
        ends = await asyncio.gather(*(unit(producer, b"%d" % number, number) for number in range(3)))
        assert all(end is None or end.outcome is Outcome.NOT_SENT for end in ends)
        assert (seconds > 240) <= all(ends)
        await asyncio.sleep(max(0.0, world.hung_until - loop.time()) + 60)
        assert await unit(producer, b"after", 1) is None
        kept = [b"%d" % number for number, end in enumerate(ends) if end is None]
        assert Counter(committed(cluster)) == Counter([b"before", *kept, b"after"])


@virtual
async def test_units_that_wait_have_their_time_again_while_the_abort_takes_long(world: World) -> None:
    times: dict[str, Any] = {"max_block_ms": 2000, "delivery_timeout_ms": 10_000, "request_timeout_ms": 9000}
    async with a_cluster(2, 1) as cluster, transactional(cluster, linger_ms=0, **times) as producer:
        await producer.init_transactions()

        async def unless_it_is_poison(exchange: Any) -> None:
            if b"poison" in bytes(exchange.frame):
                await asyncio.Event().wait()
            await answer(exchange)

        cluster.broker.always(ApiKey.PRODUCE, unless_it_is_poison)
        poison = asyncio.create_task(unit(producer, b"poison", 0))
        await asyncio.sleep(0.5)
        assert await unit(producer, b"fine", 1) is None
        assert await poison is not None
        assert committed(cluster) == [b"fine"]


@virtual
async def test_a_unit_keeps_its_own_error_if_the_abort_does_not_end(world: World) -> None:
    """The others learn that their transaction has not ended: none of them has called abort_transaction()."""
    times: dict[str, Any] = {"max_block_ms": 2000, "delivery_timeout_ms": 10_000, "request_timeout_ms": 1000}
    async with (
        a_cluster(2, 1, configs={"message.max.bytes": 1000}) as cluster,
        transactional(cluster, **times) as producer,
    ):
        await producer.init_transactions()
        cluster.broker.always(ApiKey.END_TXN, never())
        ends = await asyncio.gather(unit(producer, b"fine", 0), unit(producer, bytes(2000), 1))
        fine, large = ends
        assert isinstance(large, RecordTooLargeException)
        assert isinstance(fine, TimeoutException)
        assert str(fine).startswith("the transaction of the unit has not ended within delivery.timeout.ms=10000 and")
        assert all(end is not None and end.outcome is Outcome.NOT_SENT for end in ends)
        cluster.broker.always(ApiKey.END_TXN, answer)
        assert await unit(producer, b"after", 0) is None
        assert committed(cluster) == [b"after"]
