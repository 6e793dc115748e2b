"""The result of ``enqueue`` for a record that cannot be appended at once."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

from aioproducer.producer.admission.unawaited import NAME
from aioproducer.producer.delivery.delivery import Delivery


def _nothing() -> None:
    pass


class Enqueuing(Coroutine[Any, Any, Delivery]):
    """Awaits the coroutine that ``steps()`` makes at the first step; the record was handed over before.

    ``given_up()`` is called if it is cancelled or closed before its first step. If it is dropped without being awaited,
    it warns, and ``loop`` calls ``forgotten()``.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop | None,
        steps: Callable[[], Coroutine[Any, Any, Delivery]],
        given_up: Callable[[], object] = _nothing,
        forgotten: Callable[[], object] = _nothing,
    ) -> None:
        self._loop = loop
        self._steps = steps
        self._given_up = given_up
        self._forgotten = forgotten
        self._begun: Coroutine[Any, Any, Delivery] | None = None

    def _begin(self) -> Coroutine[Any, Any, Delivery]:
        if self._begun is None:
            self._begun = self._steps()
        return self._begun

    def __await__(self) -> Generator[Any, None, Delivery]:
        return self._begin().__await__()

    def send(self, value: Any) -> Any:
        return self._begin().send(value)

    def throw(self, *error: Any) -> Any:
        if self._begun is None:
            self._given_up()
        return self._begin().throw(*error)

    def close(self) -> None:
        if self._begun is None:
            self._given_up()
        self._begin().close()

    def __del__(self) -> None:
        if self._begun is not None:
            return
        try:
            warnings.warn(f"coroutine {NAME!r} was never awaited", RuntimeWarning, stacklevel=2, source=self)
        finally:
            if self._loop is not None and self._forgotten is not _nothing:
                # Through the loop: the garbage collector may run in the middle of any code, in any thread.
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._forgotten)
