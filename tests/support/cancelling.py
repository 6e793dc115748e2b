"""Cancels a call at each place where it waits, one after the other, in every way that programs use.

``everywhere(how, scenario)`` runs the scenario repeatedly. The scenario awaits ``strike(call)`` for the call to cancel.
The first run cancels the call at its first wait, the next run at its second, until a run ends without a cancellation.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from enum import Enum
from typing import Any

import anyio
import pytest

from tests.support.virtual_time import World, virtual

MOST_WAITS = 300
"""The largest number of waits of one call."""

MOST_CANCELLATIONS = 5
"""How often a scope may cancel one call before it ends. A call that waits again, or retries, is cancelled each time."""


class How(Enum):
    ONCE = "task.cancel() while it waits"
    TWICE = "task.cancel(), and again where it waits next"
    AT_THE_END = "task.cancel() when what it waits for is done, before it is woken"
    TIMEOUT = "asyncio.timeout"
    GROUP = "a sibling in an asyncio.TaskGroup fails"
    SCOPE = "anyio.CancelScope"
    SCOPE_AT_THE_END = "anyio.CancelScope, when what it waits for is done"
    MOVE_ON = "the deadline of anyio.move_on_after comes"


class Strike:
    """Awaits a call, and cancels it where it waits for the ``at``-th time."""

    def __init__(self, how: How, at: int) -> None:
        self._how = how
        self._at = at
        self._waits = 0
        self._thrown = 0
        self._failed = False
        self._cancel: Callable[[], object]
        self.happened = False
        self.cancelled = False
        """Whether the call ended with the cancellation."""

    async def __call__(self, call: Awaitable[Any]) -> Any:
        """Returns or raises the result of the call; None if it was cancelled. Await it once, where nothing cancels."""
        task = asyncio.Task(self._in_its_task(call), name="struck")
        await asyncio.wait([task])
        if self.cancelled:
            assert self.happened, "cancelled by somebody else"
        elif not self._failed:
            assert not self._thrown, "the call has swallowed its cancellation"
        return None if task.cancelled() else task.result()

    async def _watch(self, call: Awaitable[Any]) -> Any:
        try:
            return await _Watched(call, self._waited, self._threw)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        except BaseException:
            self._failed = True
            raise

    async def _in_its_task(self, call: Awaitable[Any]) -> Any:
        watched = self._watch(call)
        match self._how:
            case How.SCOPE | How.SCOPE_AT_THE_END | How.MOVE_ON:
                return await self._in_scope(watched)
            case How.TIMEOUT:
                try:
                    async with asyncio.timeout(None) as timeout:
                        self._cancel = lambda: timeout.reschedule(0)
                        return await watched
                except TimeoutError:
                    assert self.cancelled
            case How.GROUP:
                failing = asyncio.Event()
                self._cancel = failing.set
                try:
                    async with asyncio.TaskGroup() as group:
                        sibling = group.create_task(_fail(failing))
                        result = await watched
                        sibling.cancel()
                        return result
                except* SiblingError:
                    pass
            case _:
                current = asyncio.current_task()
                assert current is not None
                self._cancel = current.cancel
                return await watched
        return None

    async def _in_scope(self, watched: Coroutine[Any, Any, Any]) -> Any:
        with anyio.CancelScope() as scope:
            if self._how is How.MOVE_ON:
                self._cancel = lambda: setattr(scope, "deadline", anyio.current_time())
            else:
                self._cancel = scope.cancel
            return await watched
        assert self.cancelled == scope.cancelled_caught
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0
        return None

    def _waited(self, future: asyncio.Future[Any] | None) -> None:
        self._waits += 1
        assert self._waits < MOST_WAITS, "it waits for ever"
        again = self._how is How.TWICE and self._waits == self._at + 1
        if self._waits != self._at and not again:
            return
        self.happened = True
        if self._how in (How.AT_THE_END, How.SCOPE_AT_THE_END) and future is not None:
            future.add_done_callback(lambda _: self._cancel())
        else:
            asyncio.get_running_loop().call_soon(self._cancel)

    def _threw(self) -> None:
        self._thrown += 1
        assert self._thrown <= MOST_CANCELLATIONS, "it does not end although it is cancelled at every turn"

    def __str__(self) -> str:
        return f"{self._how.value}, wait {self._at}"


class SiblingError(Exception):
    """The error with which the other task of a group fails."""


async def _fail(when: asyncio.Event) -> None:
    await when.wait()
    raise SiblingError


class _Watched:
    """An awaitable that calls ``waited(future)`` at each wait, and ``threw()`` for each error that ends one."""

    def __init__(
        self, call: Awaitable[Any], waited: Callable[[asyncio.Future[Any] | None], None], threw: Callable[[], None]
    ) -> None:
        self._call = call
        self._waited = waited
        self._threw = threw

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._call.__await__()
        error: BaseException | None = None
        while True:
            try:
                future = next(steps) if error is None else steps.throw(error)
            except StopIteration as stop:
                return stop.value
            self._waited(future)
            error = None
            try:
                yield future
            except BaseException as thrown:
                if isinstance(thrown, asyncio.CancelledError):
                    self._threw()
                error = thrown


Scenario = Callable[[Strike], Coroutine[Any, Any, None]]
Run = Callable[[Coroutine[Any, Any, None]], None]


def in_virtual_time(test: Coroutine[Any, Any, None]) -> None:
    @virtual
    async def run(world: World) -> None:
        await test

    run()


def on_asyncio(test: Coroutine[Any, Any, None]) -> None:
    _on_sockets(test, asyncio.new_event_loop)


def on_uvloop(test: Coroutine[Any, Any, None]) -> None:
    uvloop = pytest.importorskip("uvloop")
    _on_sockets(test, uvloop.new_event_loop)


def with_eager_tasks(test: Coroutine[Any, Any, None]) -> None:
    def make_loop() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        if sys.version_info >= (3, 12):
            loop.set_task_factory(asyncio.eager_task_factory)
        return loop

    _on_sockets(test, make_loop)


REAL_LOOPS = [on_asyncio, on_uvloop, *([with_eager_tasks] if sys.version_info >= (3, 12) else [])]


def _on_sockets(test: Coroutine[Any, Any, None], make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Runs on real connections, and checks that no task is left; one that was cancelled twice may still be ending."""

    async def checked() -> None:
        await test
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            _, left = await asyncio.wait(left, timeout=5)
        assert not left, f"tasks left behind: {left}"
        for _ in range(10):  # aborted transports close their sockets in the loop's next turns
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(checked())


def everywhere(how: How, scenario: Scenario, run: Run) -> int:
    """Runs the scenario on a new loop for each place; returns the number of places."""
    for at in range(1, MOST_WAITS):
        strike = Strike(how, at)
        try:
            run(scenario(strike))
        except BaseException as error:
            error.add_note(f"cancelled by {strike}")
            raise
        if not strike.happened:
            return at - 1
    raise AssertionError("there is no end of places")


def named(value: Any) -> str:
    return value.name.lower() if isinstance(value, How) else str(value.__name__)


IN_VIRTUAL_TIME = [(how, in_virtual_time) for how in How]
ON_SOCKETS = [(how, run) for run in REAL_LOOPS for how in (How.TWICE, How.AT_THE_END, How.SCOPE)]
WAYS = pytest.mark.parametrize(("how", "run"), IN_VIRTUAL_TIME, ids=named)
WAYS_AND_LOOPS = pytest.mark.parametrize(("how", "run"), IN_VIRTUAL_TIME + ON_SOCKETS, ids=named)
