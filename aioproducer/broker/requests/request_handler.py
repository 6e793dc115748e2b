"""The pool of tasks that handle a node's requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from aioproducer.broker.requests import request_log
from aioproducer.broker.requests.fatal_exit_error import FatalExitError
from aioproducer.broker.requests.request import Request
from aioproducer.broker.requests.request_channel import CallbackRequest, RequestChannel, Sentinel
from aioproducer.errors import SchemaException
from aioproducer.metrics.sensor import Sensor
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)


class RequestHandler(Protocol):
    """Handles requests. Kafka's ``ApiRequestHandler``."""

    def is_supported(self, api_key: int, api_version: int) -> bool:
        """Whether this API and version is supported. A request of any other closes its connection."""

    def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
        """Handles the request whose body begins at ``frame[body_at]``. The request may end later.

        Raises :class:`SchemaException` for a body that cannot be read. Any other ``Exception`` is a bug and closes the
        connection; a :class:`FatalExitError` stops the node.
        """


def avg_idle_percent(pools: Iterable[KafkaRequestHandlerPool], now: float) -> float:
    """The share of the time, 0 to 1, that the handlers of all these pools are idle (KIP-1207)."""
    busy, handlers = 0.0, 0
    for pool in pools:
        busy += pool.busy.rate(now)
        handlers += pool.size
    return max(0.0, 1.0 - busy / handlers) if handlers else 1.0


class KafkaRequestHandlerPool:
    """``num.io.threads`` tasks that take requests out of a :class:`RequestChannel`, one each per turn of the loop.

    A handler never waits while it handles a request: a request that cannot be answered at once is deferred (to a
    purgatory, or by a callback). So the size of the pool is the number of requests that are handled before the loop
    polls the sockets again. While all handlers are idle, a processor may call :meth:`handle` itself.
    """

    def __init__(
        self,
        name: str,
        channel: RequestChannel,
        handler: RequestHandler,
        clock: Clock,
        on_fatal: Callable[[FatalExitError], object] = lambda error: None,
    ) -> None:
        """``on_fatal`` is called with a fatal error, after which nothing more is handled."""
        self._name = name
        self._channel = channel
        self._handler = handler
        self._now = clock.monotonic
        self._size = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._started = 0
        self._on_fatal = on_fatal
        self._is_fatal = False
        self.busy = Sensor()
        """Seconds that handling took."""

    @property
    def size(self) -> int:
        return self._size

    def is_idle(self) -> bool:
        """Whether all handlers are idle."""
        return self._channel.idle_handlers >= len(self._tasks)

    def resize(self, size: int) -> None:
        """Starts more handlers, or ends some, each after its current request."""
        if self._is_fatal:
            return
        for _ in range(self._size, size):
            task = asyncio.get_running_loop().create_task(self._run(), name=f"{self._name}-{self._started}")
            self._started += 1
            self._tasks[task] = None
            task.add_done_callback(self._ended)
        for _ in range(size, self._size):
            self._channel.send_shutdown()
        self._size = size
        self._channel.handler, self._channel.caller, self._channel.handlers = self.handle, self._call_back, size

    def abort(self) -> None:
        """Ends all handlers; queued requests are lost."""
        self._size = 0
        self._channel.handler = self._channel.caller = None
        for task in tuple(self._tasks):
            task.cancel()

    async def wait_closed(self) -> None:
        """Returns when all handlers have ended."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._channel.rested()

    async def _run(self) -> None:
        channel = self._channel
        while not self._is_fatal:
            item = await channel.receive_request()
            if item is Sentinel.SHUTDOWN:
                return
            if isinstance(item, Request):
                self.handle(item)
            elif isinstance(item, CallbackRequest):
                self._call_back(item)
            del item  # else its request would take memory until the next one comes
            if len(channel):
                await asyncio.sleep(0)

    def handle(self, request: Request) -> None:
        """Handles a request, and its exceptions."""
        request.request_dequeue_time = began = self._now()
        frame = request.frame
        if not request_log.enabled():
            request.frame = b""
        try:
            self._handler.handle(request, frame, request.body_at)
        except FatalExitError as error:
            self._fatal(request, error)
        except Exception as error:
            self._failed(request, error)
        ended = self._now()
        if request.api_local_complete_time < 0:
            request.api_local_complete_time = ended
        self.busy.record(ended - began, ended)
        request.handled()

    def _call_back(self, callback: CallbackRequest) -> None:
        began = self._now()
        try:
            callback.fun()
        except FatalExitError as error:
            self._fatal(callback.request, error)
        except Exception as error:
            self._failed(callback.request, error)
        ended = self._now()
        self.busy.record(ended - began, ended)

    def _fatal(self, request: Request, error: FatalExitError) -> None:
        header = request.header
        log.critical(
            "a request of API %d version %d from client %r has met a fatal error, and the node stops: %s",
            header.api_key,
            header.api_version,
            header.client_id,
            str(error) or type(error).__name__,
        )
        self._stop(error)

    def fatal(self, error: FatalExitError) -> None:
        """Stops the node: a request that waited in a purgatory has raised this."""
        log.critical(
            "a request that has waited has met a fatal error, and the node stops: %s",
            str(error) or type(error).__name__,
        )
        self._stop(error)

    def _stop(self, error: FatalExitError) -> None:
        self._is_fatal = True
        self.abort()
        self._on_fatal(error)

    def _failed(self, request: Request, error: Exception) -> None:
        if isinstance(error, SchemaException):
            request.close_connection(f"its request cannot be read: {error}")
            return
        header = request.header
        log.error(
            "a request of API %d version %d from client %r failed: its connection %s is closed",
            header.api_key,
            header.api_version,
            header.client_id,
            request.connection.id,
            exc_info=error,
        )
        request.close_connection("")
