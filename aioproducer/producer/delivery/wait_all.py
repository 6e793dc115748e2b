"""Waiting for many records at once, without a task or a future for each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import filterfalse

from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import FORWARDED, PENDING, WHOLE, ProduceResult


async def wait_all(deliveries: Iterable[Delivery]) -> None:
    """Returns when every delivery is done, delivered or failed, without making a task or a future for each.

    All of them count as awaited from the start: a record that waits for memory keeps its turn, and none lingers
    needlessly. If ``wait_all`` is cancelled, none is withdrawn.
    """
    pending = list(filterfalse(Delivery.done, deliveries))
    awaited: list[Delivery] = []
    try:
        for delivery in pending:
            result, _ = delivery.place()
            result.notice()
            if result.lot is not None:
                result.lot.awaited(result)
                awaited.append(delivery)
        for delivery in pending:
            while not delivery.done():
                await delivery.settled()
    except BaseException:
        for delivery in awaited:
            result, _ = delivery.place()
            if result.lot is not None:
                result.lot.released(result)
        raise


async def all_ended(results: Iterable[ProduceResult]) -> None:
    """Returns when every result has ended, including the results it was forwarded to."""
    pending = list(results)
    while pending:
        result = pending.pop()
        if result.state == PENDING:
            future = result.loop.create_future()
            result.add_waiter(WHOLE, future)
            await future
        if result.state == FORWARDED:
            pending += [target for _, target, _ in result.targets]
