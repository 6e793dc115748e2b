"""The queue between the processors of a node, which read and write its connections, and its request handlers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from aioproducer.broker.requests.fair_queue import FairQueue
from aioproducer.broker.requests.request import Quotas, Request
from aioproducer.broker.requests.response import EndThrottlingResponse, RequestEnd, StartThrottlingResponse
from aioproducer.timing.clock import Clock


class Sentinel(Enum):
    """An item that a handler may get instead of a request."""

    SHUTDOWN = "shutdown"
    """Ends the handler that gets it."""


class CallbackRequest:
    """The rest of a deferred request; handlers run it before new requests."""

    __slots__ = ("fun", "request")

    def __init__(self, request: Request, fun: Callable[[], object]) -> None:
        self.request = request
        self.fun = fun


Item = Request | CallbackRequest | Sentinel


class ResponseQueue(Protocol):
    """A processor, as seen by handlers."""

    def enqueue_response(self, request: Request, response: RequestEnd) -> None: ...


class RequestChannel:
    """A queue of at most ``size`` requests (queued.max.requests), in which the addresses of clients take turns. Kafka's
    class of this name, where the requests of all clients are in one order.

    If the queue is full, a processor waits and reads nothing meanwhile: that is how slow handlers slow down clients.
    While nothing is queued, a processor handles a request itself: :meth:`handle_now`.
    Callbacks come before requests, because they have waited once. They do not count: the request of each belongs to a
    muted connection, so each connection has one at most.
    """

    def __init__(
        self,
        size: int,
        clock: Clock,
        quotas: Quotas | None = None,
        on_complete: Callable[[Request, RequestEnd, float], object] | None = None,
    ) -> None:
        """``on_complete`` is called with each finished request (written, without response, or abandoned), its end, and
        the time."""
        self._size = size
        self._now = clock.monotonic
        self.quotas = quotas
        self._requests: FairQueue[Request | Sentinel] = FairQueue()
        self._callbacks: deque[CallbackRequest] = deque()
        # A woken handler or processor looks at the queue again, so no item passes those that are queued. Each item that
        # is queued wakes a handler, and each item that is taken wakes a processor.
        self._idle_handlers: deque[asyncio.Future[None]] = deque()
        self._blocked: deque[asyncio.Future[None]] = deque()
        self._waiting_for_rest: list[asyncio.Future[None]] = []
        self._processors: dict[int, ResponseQueue] = {}
        self.handler: Callable[[Request], object] | None = None
        self.caller: Callable[[CallbackRequest], object] | None = None
        """Runs callbacks as a handler does."""
        self.handlers = 0
        """The number of handlers."""
        self._on_complete = on_complete

    def __len__(self) -> int:
        """How many requests are queued (Kafka's ``RequestQueueSize``)."""
        return len(self._requests)

    @property
    def idle_handlers(self) -> int:
        """The number of handlers that wait for an item."""
        return len(self._idle_handlers)

    # processors

    def add_processor(self, id: int, processor: ResponseQueue) -> None:
        self._processors[id] = processor

    def remove_processor(self, id: int) -> None:
        del self._processors[id]

    def handle_now(self, request: Request) -> bool:
        """Handles a request without queueing it, unless an earlier request still waits. Returns whether it did.

        Waking a task would cost a turn of the loop, and so would each answer.
        """
        if self.handler is None or self.waits:
            return False
        self.handler(request)
        return True

    async def send_request(self, request: Request) -> None:
        """Queues a request; waits while the queue is full."""
        while not self.offer(request):
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._blocked.append(room)
            try:
                await room
            except asyncio.CancelledError:
                if room.cancelled():
                    _discard(self._blocked, room)
                else:
                    _wake_one(self._blocked)
                raise

    def offer(self, request: Request) -> bool:
        """Queues a request if there is room, and returns whether there was."""
        if len(self._requests) >= self._size:
            return False
        self._put(request)
        return True

    # handlers

    def poll(self) -> Item | None:
        """The next item, or None."""
        if self._callbacks:
            return self._callbacks.popleft()
        if not self._requests:
            return None
        item = self._requests.popleft()
        _wake_one(self._blocked)
        return item

    async def receive_request(self) -> Item:
        """Waits for the next item."""
        while (item := self.poll()) is None:
            work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle_handlers.append(work)
            self.rested()
            try:
                await work
            except asyncio.CancelledError:
                if work.cancelled():
                    _discard(self._idle_handlers, work)
                else:
                    _wake_one(self._idle_handlers)
                raise
        return item

    def send_callback(self, request: Request, fun: Callable[[], object]) -> None:
        """Queues the rest of a request for a handler."""
        self._callbacks.append(CallbackRequest(request, fun))
        _wake_one(self._idle_handlers)

    def call_now(self, request: Request, fun: Callable[[], object]) -> None:
        """Runs the rest of a request without queueing it."""
        if self.caller is not None:
            self.caller(CallbackRequest(request, fun))

    @property
    def waits(self) -> bool:
        """Whether anything waits for a handler."""
        return bool(self._requests or self._callbacks)

    def send_shutdown(self) -> None:
        """Ends one handler, when the queue comes to it. There is always room for this."""
        self._put(Sentinel.SHUTDOWN)

    def send_response(self, request: Request, response: RequestEnd) -> None:
        """Hands a response to the processor of its request, unless that processor has ended."""
        if not isinstance(response, StartThrottlingResponse | EndThrottlingResponse):
            now = self._now()
            request.response_complete_time = now
            if request.api_local_complete_time < 0:
                request.api_local_complete_time = now
        processor = self._processors.get(request.processor)
        if processor is not None:
            processor.enqueue_response(request, response)

    def completed(self, request: Request, response: RequestEnd) -> None:
        """Called when a processor has finished a request."""
        request.over()
        if self._on_complete is not None:
            self._on_complete(request, response, self._now())

    # waiting until processors and handlers are idle

    def rested(self) -> None:
        """Called when a processor or a handler becomes idle."""
        while self._waiting_for_rest:
            waiter = self._waiting_for_rest.pop()
            if not waiter.done():
                waiter.set_result(None)

    async def rest(self) -> None:
        """Returns when the next processor or handler becomes idle."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting_for_rest.append(waiter)
        await waiter

    def _put(self, item: Request | Sentinel) -> None:
        self._requests.append(item.connection.address if isinstance(item, Request) else None, item)
        _wake_one(self._idle_handlers)


def _wake_one(waiting: deque[asyncio.Future[None]]) -> None:
    while waiting:
        waiter = waiting.popleft()
        if not waiter.done():
            waiter.set_result(None)
            return


def _discard(waiting: deque[asyncio.Future[None]], waiter: asyncio.Future[None]) -> None:
    """Removes a cancelled waiter, unless it was skipped and removed before its task could run."""
    if waiter in waiting:
        waiting.remove(waiter)
