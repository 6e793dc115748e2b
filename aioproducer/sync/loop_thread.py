"""The thread that a producer's event loop runs in, and calls into it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

try:
    from anyio.from_thread import BlockingPortal
except ModuleNotFoundError as error:
    raise ImportError("aioproducer.sync needs anyio: pip install 'aioproducer[sync]'") from error

from aioproducer.errors import IllegalStateException
from aioproducer.process.event_loop import new_event_loop
from aioproducer.producer.producer import KafkaProducer
from aioproducer.sync.handover import Handover

T = TypeVar("T")

CLOSED: Final = "the producer is closed, or its thread has ended; make a new one"


class LoopThread:
    """Starts in the constructor, which raises if the producer cannot start, and ends with ``close()``.

    It keeps ``owner`` alive, because a producer that nobody references may still have records to deliver.
    """

    def __init__(self, producer: KafkaProducer[Any, Any], owner: object) -> None:
        self._producer = producer
        self._owner = owner
        began: Future[tuple[BlockingPortal, Handover]] = Future()
        self._thread = threading.Thread(target=self._run, args=(began,), name="aioproducer", daemon=True)
        self._thread.start()
        self._portal, self.handover = began.result()

    def check_elsewhere(self) -> None:
        """IllegalStateException if called in this same thread, which cannot wait for itself."""
        if self.handover.on_loop():
            raise IllegalStateException(
                "it was called in a delivery callback or other code that the producer's thread runs, and "
                "would block that thread: call it from one of your own threads"
            )

    def call(self, function: Callable[..., Awaitable[T]], *arguments: Any, wait: float | None = None, **more: Any) -> T:
        """Makes the loop call and await ``function``, after the records this thread has sent; returns the result.

        If the wait is interrupted, or takes longer than ``wait`` seconds, the call is cancelled.
        """
        self.check_elsewhere()

        async def in_order() -> T:
            self.handover.take()
            return await function(*arguments, **more)

        try:
            future = self._portal.start_task_soon(in_order)
        except RuntimeError as error:
            raise IllegalStateException(CLOSED) from error
        try:
            return future.result(wait)
        except TimeoutError:
            if future.done():
                raise
            future.cancel()
            raise TimeoutError(f"{getattr(function, '__name__', 'the call')}() has not ended within {wait} s") from None
        except CancelledError:
            raise IllegalStateException(CLOSED) from None
        except BaseException:
            future.cancel()
            raise

    def close(self, timeout: float | None) -> None:
        """Closes the producer and ends the thread; any number of threads may call it, and wait for the same end."""
        try:
            with suppress(IllegalStateException):  # another thread closed it first, or the loop has ended
                self.call(self._producer.close, timeout)
        finally:
            with suppress(RuntimeError):  # the same
                self._portal.start_task_soon(self._portal.stop)
            self._thread.join()

    def _run(self, began: Future[tuple[BlockingPortal, Handover]]) -> None:
        try:
            with _event_loop() as loop:
                loop.run_until_complete(self._live(began))
        except BaseException as error:
            if began.done():
                raise
            began.set_exception(error)
        finally:
            if began.exception() is None:
                began.result()[1].end()

    async def _live(self, began: Future[tuple[BlockingPortal, Handover]]) -> None:
        async with BlockingPortal() as portal:
            await self._producer.start()
            began.set_result((portal, Handover(self._producer, asyncio.get_running_loop())))
            await portal.sleep_until_stopped()


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Ends the loop without the extra thread of `asyncio.run`, which cannot start when the interpreter ends."""
    loop = new_event_loop()
    try:
        yield loop
    finally:
        try:
            if rest := asyncio.all_tasks(loop):  # it has ended by itself
                for task in rest:
                    task.cancel()
                loop.run_until_complete(asyncio.wait(rest))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()
