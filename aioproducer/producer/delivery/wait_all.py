"""Waiting for many records at once, without a task or a future for each."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from itertools import filterfalse
from typing import Final

from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import FORWARDED, PENDING, WHOLE, ProduceResult

MANY: Final = 1000
"""So many deliveries are looked at, and then read, in half a millisecond."""


async def wait_all(deliveries: Iterable[Delivery]) -> None:
    """Returns when every delivery is done, delivered or failed, without making a task or a future for each.

    All of them count as awaited from the start: a record that waits for memory keeps its turn, and none lingers
    needlessly. If ``wait_all`` is cancelled, none is withdrawn. If there are many and all are done, the loop gets a
    turn all the same: a caller that reads one list after the other does not hold it.
    """
    given = list(deliveries)
    pending = list(filterfalse(Delivery.done, given))
    if len(given) >= MANY and not pending:
        await _Turn()
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


class _Turn:
    """Awaited, it gives the loop a turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield


async def all_ended(results: Iterable[ProduceResult]) -> None:
    """Returns when every result has ended, including the results it was forwarded to. If there are many, the loop gets
    turns meanwhile."""
    pending, looked = list(results), 0
    while pending:
        looked += 1
        if looked % MANY == 0:
            await _Turn()
        result = pending.pop()
        if result.state == PENDING:
            await result.waiter(WHOLE)
        if result.state == FORWARDED:
            pending += [target for _, target, _ in result.targets]
