"""Those who handle a node's requests."""

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
    """What requests are handed to. Kafka's ``ApiRequestHandler``."""

    def is_supported(self, api_key: int, api_version: int) -> bool:
        """Whether requests of this API and version may be handed over. Others cost the client its connection."""

    def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
        """Handles the request whose body begins at ``frame[body_at]``. It may end later.

        Raises :class:`SchemaException` for a body that cannot be read. Any other ``Exception`` is a bug, and costs the
        connection; a :class:`FatalExitError` stops the node.
        """


def avg_idle_percent(pools: Iterable[KafkaRequestHandlerPool], now: float) -> float:
    """Which share of their time, 0 to 1, the handlers of all these pools have nothing to do (KIP-1207)."""
    busy, handlers = 0.0, 0
    for pool in pools:
        busy += pool.busy.rate(now)
        handlers += pool.size
    return max(0.0, 1.0 - busy / handlers) if handlers else 1.0


class KafkaRequestHandlerPool:
    """``num.io.threads`` tasks that take requests out of a :class:`RequestChannel`, one each per turn of the loop.

    One that is at work does not wait for anything: what cannot be answered at once is put off (a purgatory, a
    callback), so the size of the pool is how many requests may be handled before sockets are looked at again. While
    all are idle a processor may use their time: it calls :meth:`handle` itself.
    """

    def __init__(self, name: str, channel: RequestChannel, handler: RequestHandler, clock: Clock) -> None:
        self._name = name
        self._channel = channel
        self._handler = handler
        self._now = clock.monotonic
        self._size = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._started = 0
        self.on_fatal: Callable[[FatalExitError], object] | None = None
        """Told when a handler has raised this: no handler handles anything more."""
        self._is_fatal = False
        self.busy = Sensor()
        """Seconds that handling took."""

    @property
    def size(self) -> int:
        return self._size

    def is_idle(self) -> bool:
        """Whether no handler has anything to do."""
        return self._channel.idle_handlers >= len(self._tasks)

    def resize(self, size: int) -> None:
        """Starts more handlers, or ends some, each after the request it is at."""
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
        self._channel.handler, self._channel.handlers = self.handle, size

    def abort(self) -> None:
        """Ends all handlers: what is queued is lost."""
        self._size = 0
        self._channel.handler = None
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
            if len(channel):
                await asyncio.sleep(0)

    def handle(self, request: Request) -> None:
        """Has a request handled."""
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
        request.connection.release(request.size)

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
        self._is_fatal = True
        header = request.header
        log.critical(
            "a request of API %d version %d from client %r has met a fatal error, and the node stops: %s",
            header.api_key,
            header.api_version,
            header.client_id,
            str(error) or type(error).__name__,
        )
        self.abort()
        if self.on_fatal is not None:
            self.on_fatal(error)

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
