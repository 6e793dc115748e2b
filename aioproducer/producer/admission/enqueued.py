"""The result of ``enqueue`` for a record in the accumulator."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast, final

from mypy_extensions import mypyc_attr

from aioproducer.producer.admission.unawaited import NAME, unawaited
from aioproducer.producer.delivery.delivery import Delivery


async def _delivery(delivery: Delivery) -> Delivery:
    return delivery


@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Enqueued:
    """A finished coroutine that warns if it is never awaited, which compiled coroutines do not."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._awaited = False

    def __await__(self) -> Generator[Any, None, Delivery]:
        self._awaited = True
        return _delivery(self._delivery).__await__()

    def send(self, value: None) -> Any:
        self._awaited = True
        raise StopIteration(self._delivery)

    def throw(self, error: Any, value: BaseException | None = None, traceback: TracebackType | None = None) -> Any:
        self._awaited = True
        return self._delivery.throw(error, value, traceback)

    def close(self) -> None:
        self._awaited = True

    def __del__(self) -> None:
        if not self._awaited:
            # If warnings are errors, this one would crash: a native finalizer must not raise.
            unawaited()  # type: ignore[unused-coroutine]


def enqueued(delivery: Delivery) -> Coroutine[Any, Any, Delivery]:
    """The delivery, for a caller that awaits it."""
    return cast(Coroutine[Any, Any, Delivery], Enqueued(delivery))


if hasattr(enqueued, "__code__") and not TYPE_CHECKING:
    # Interpreted: a native function has no code object. Python's own coroutine warns by itself, and costs less than a
    # class.
    async def enqueued(delivery):
        return delivery

    enqueued.__qualname__ = NAME
