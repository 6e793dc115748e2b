"""A user's coroutine that runs in its own context, within a task of the producer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, Generic, TypeVar

from aioproducer.producer.hooks.hooks import Hooks

T = TypeVar("T")


class InContext(Generic[T]):
    """Awaited, it runs the coroutine in the awaiting task and in ``context``, and counts it in ``hooks.depth``.

    The task makes every step, so time-outs and cancel scopes in the coroutine work as in any other.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], context: Context, hooks: Hooks) -> None:
        self._coroutine = coroutine
        self._context = context
        self._hooks = hooks

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine = self._coroutine
        step: Callable[[Any], Any] = coroutine.send
        given: Any = None
        try:
            while True:
                self._hooks.depth += 1
                try:
                    awaited = self._context.run(step, given)
                except StopIteration as ended:
                    made: T = ended.value
                    return made
                finally:
                    self._hooks.depth -= 1
                try:
                    given = yield awaited
                    step = coroutine.send
                except GeneratorExit:
                    raise
                except BaseException as error:
                    given = error
                    step = coroutine.throw
        finally:
            coroutine.close()
