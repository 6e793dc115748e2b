"""The future of a record: what ``send()`` returns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from functools import partial
from itertools import cycle, repeat
from typing import Any, Final, NamedTuple

from aioproducer import Delivery
from aioproducer import RecordMetadata as OwnMetadata
from aioproducer.compat.aiokafka import errors
from aioproducer.compat.aiokafka.structs import RecordMetadata

READS_A_TURN: Final = 500
"""So many results are read in half a millisecond."""


class Ending(NamedTuple):
    """What the futures of one producer have in common."""

    loop: asyncio.AbstractEventLoop
    result_of: Callable[[OwnMetadata], Any]
    """Turns a delivery's metadata into the future's result."""
    turn_is_due: Callable[[], bool]
    """Called when a future that is done is awaited: whether the loop gets a turn first."""


def reading_turns() -> Callable[[], bool]:
    """True at every READS_A_TURN-th call.

    Awaiting a future that is done does not suspend, so a task that reads thousands, one after the other, would hold
    the loop until the last.
    """
    return cycle((*repeat(False, READS_A_TURN - 1), True)).__next__


def settle(future: asyncio.Future[Any], delivery: Delivery, result_of: Callable[[OwnMetadata], Any]) -> None:
    """Ends a future as its delivery ended, unless the future is done already: it may have been cancelled."""
    if future.done():
        return
    error = delivery.exception()
    if error is None:
        future.set_result(result_of(delivery.result()))
    else:
        future.set_exception(errors.translated_with_cause(error))


class RecordFuture(asyncio.Future[RecordMetadata]):
    """An ``asyncio.Future`` that is set up only when it is needed: when somebody waits, cancels or adds a callback.

    Until then it answers from the delivery. Most futures are read after their record was delivered, so they cost no
    more than this object: no callback, and no tuples that the garbage collector traverses again and again. That
    traversal took most of a record's time.
    """

    __slots__ = ("_delivery", "_ending")

    def __init__(self, delivery: Delivery, ending: Ending) -> None:
        # super().__init__() waits for _begin, so every method of Future is overridden below.
        self._delivery: Delivery | None = delivery
        self._ending = ending

    def _begin(self) -> None:
        """Sets it up as an ordinary future."""
        delivery = self._delivery
        if delivery is None:
            return
        self._delivery = None
        super().__init__(loop=self._ending.loop)
        if delivery.done():
            settle(self, delivery, self._ending.result_of)
        else:
            delivery.add_done_callback(partial(settle, self, result_of=self._ending.result_of))

    def _delivered(self) -> Delivery | None:
        """The delivery, if it succeeded and still stands for the future; otherwise sets up the future."""
        delivery = self._delivery
        if delivery is not None and delivery.done() and delivery.outcome is None:
            return delivery
        self._begin()
        return None

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        delivery = self._delivery  # without _delivered(): every record would pay for that call
        if delivery is None or not delivery.done() or delivery.outcome is not None:
            self._begin()
            return (yield from super().__await__())
        ending = self._ending
        if ending.turn_is_due():
            yield
        metadata: RecordMetadata = ending.result_of(delivery.result())
        return metadata

    __iter__ = __await__

    def done(self) -> bool:
        delivery = self._delivery
        return super().done() if delivery is None else delivery.done()

    def cancelled(self) -> bool:
        return self._delivery is None and super().cancelled()

    def result(self) -> RecordMetadata:
        delivery = self._delivered()
        if delivery is None:
            return super().result()
        metadata: RecordMetadata = self._ending.result_of(delivery.result())
        return metadata

    def exception(self) -> BaseException | None:
        return super().exception() if self._delivered() is None else None

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._ending.loop

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return self._ending.loop

    @_loop.setter
    def _loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Future's constructor sets it where Future is written in Python (PyPy)."""

    def add_done_callback(self, callback: Callable[[Any], object], /, *, context: Context | None = None) -> None:
        self._begin()
        super().add_done_callback(callback, context=context)

    def remove_done_callback(self, callback: Callable[[Any], object], /) -> int:
        self._begin()
        return super().remove_done_callback(callback)

    def cancel(self, msg: Any | None = None) -> bool:
        self._begin()
        return super().cancel(msg)

    def set_result(self, result: RecordMetadata, /) -> None:
        self._begin()
        super().set_result(result)

    def set_exception(self, exception: type | BaseException, /) -> None:
        self._begin()
        super().set_exception(exception)

    def __repr__(self) -> str:
        self._begin()
        return super().__repr__()
