"""An event loop in which time is a number, and a seed decides everything that asyncio leaves open."""

from __future__ import annotations

import asyncio
import gc
import heapq
import math
import socket
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Any, TypeVar

from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.network.network import Network
from aioproducer.testing.simulation.network.server import SimulatedServer
from aioproducer.testing.simulation.network.transport import FakeSocket, SimulatedTransport

T = TypeVar("T")
P = TypeVar("P", bound=asyncio.BaseProtocol)

EPOCH_MS = 1_700_000_000_000
"""The record timestamp of the loop's time 0, in milliseconds since 1970."""

_TURNS_PER_SECOND = 4000
"""Additional turns per second of virtual time: a task that retries after each back-off does not count as spinning."""


class Stuck(Exception):
    """The simulation cannot continue, or would never end; the message says which."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """asyncio's own scheduling over a clock that jumps to the next event, and a :class:`Network` in memory.

    The loop keeps asyncio's promises: ``call_soon`` is first come, first served, a timer never fires early, and the
    bytes of a connection arrive in order. ``random`` decides what asyncio leaves open: the order in which sockets are
    ready, how late a timer fires, and, with the probability ``stalls`` per turn, for how long the loop is held up.
    ``collects``: garbage is collected all the time, so a task without references disappears. ``coarse``: the clock has
    whole milliseconds and rounds delays to them, as in uvloop, so a timer may fire early. ``computing``: the seconds
    that go by whenever somebody asks the clock, so that what gives others turns when it has taken long does so.
    """

    def __init__(
        self,
        random: Random,
        network: Network,
        *,
        stalls: float = 0.0,
        collects: bool = False,
        coarse: bool = False,
        computing: float = 0.0,
        max_steps: int = 50_000,
    ) -> None:
        super().__init__()
        self._selector = self  # BaseEventLoop asks it: see select
        self._random = random
        self._now = self._began = random.uniform(1, 1e6)
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._event_count = 0
        self._clock_resolution = 1e-9
        self._longest_delay = random.choice((0.0, 0.0, 0.0005, 0.005))
        self.max_steps = max_steps
        self.stalls = stalls
        self.collects = collects
        self.coarse = coarse
        self.computing = computing
        self.set_debug(False)  # a run is the same in Python's development mode
        self.steps = 0
        """Turns of the loop so far."""
        self.network = network
        network.attach(self)

    # Time

    def time(self) -> float:
        self._now += self.computing
        self._began += self.computing  # this allows no more turns
        now = self.exact_time()
        return math.floor(now * 1000) / 1000 if self.coarse else now

    def exact_time(self) -> float:
        """The time in seconds. Reading the clock takes a microsecond, so no two readings agree by chance."""
        self._now += 1e-6
        return self._now

    @property
    def now(self) -> float:
        """The time, without reading the clock."""
        return self._now

    def hold(self, seconds: float) -> None:
        """Moves time on without a turn of the loop, as a computation does."""
        self._now += seconds

    def at(self, when: float, callback: Callable[[], object]) -> None:
        """Calls ``callback()`` at that time, before anything else, as an event outside the loop."""
        self._event_count += 1
        heapq.heappush(self._events, (when, self._event_count, callback))

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._longest_delay:
            when += self._random.uniform(0, self._longest_delay)
        if self.coarse:
            milliseconds = math.floor(self._now * 1000)
            when = (milliseconds + max(0, round((when - milliseconds / 1000) * 1000))) / 1000
        return super().call_at(when, callback, *args, context=context)

    def timers(self) -> list[asyncio.TimerHandle]:
        """The timers that have not fired yet."""
        return [timer for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]

    # The interface of a selector, for BaseEventLoop

    def select(self, timeout: float | None) -> list[asyncio.Handle]:
        """Moves time on to the next event, at most by ``timeout``; returns the callbacks of ready sockets."""
        self.steps += 1
        if self.steps > self.max_steps + _TURNS_PER_SECOND * (self._now - self._began):
            raise Stuck(f"the loop has turned {self.steps} times: something spins")
        if self.collects and self.steps % 16 == 0:
            gc.collect()
        deadline = math.inf if timeout is None else self._now + timeout
        self._happen()
        calls = self.network.ready()
        while not calls and not self._ready and timeout != 0:  # type: ignore[attr-defined]
            upcoming = self._events[0][0] if self._events else math.inf
            if upcoming >= deadline:
                if deadline == math.inf:
                    raise Stuck("deadlock: nothing is ready, and nothing will ever be")
                self._now = max(self._now, deadline)
                break
            self._now = max(self._now, upcoming)
            self._happen()
            calls = self.network.ready()
        if self.stalls and self._random.random() < self.stalls:
            self._now += self._random.expovariate(30)
            self._happen()
            calls = self.network.ready()
        self._now += 1e-5
        if calls:
            self.max_steps += 1  # over a slow line large requests come in tens of thousands of pieces
        return [asyncio.Handle(call, (), self) for call in calls]

    def _happen(self) -> None:
        events = self._events
        while events and events[0][0] <= self._now:
            heapq.heappop(events)[2]()

    def _process_events(self, handles: list[asyncio.Handle]) -> None:
        for handle in handles:
            self._add_callback(handle)  # type: ignore[attr-defined]

    def _write_to_self(self) -> None:
        pass  # there are no other threads

    # Threads and network

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Calls ``func`` at once; its duration is drawn."""
        future: asyncio.Future[T] = self.create_future()
        try:
            result = func(*args)
        except Exception as error:
            self._settle_later(future, future.set_exception, error)
        else:
            self._settle_later(future, future.set_result, result)
        return future

    def _settle_later(self, future: asyncio.Future[T], settle: Callable[[Any], object], value: object) -> None:
        self.call_later(self._random.expovariate(1000), lambda: None if future.done() else settle(value))

    async def getaddrinfo(  # type: ignore[override]
        self, host: str, port: int, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[tuple[Any, ...]]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))
            for address in await self.network.addresses(host)
        ]

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], P], host: str, port: int
    ) -> tuple[asyncio.Transport, P]:
        address = await self.network.resolve(host)
        return await self._attach(await self.network.connect(address, port), protocol_factory())

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: str, port: int, *, backlog: int = 100
    ) -> SimulatedServer:
        server = SimulatedServer(self, protocol_factory, await self.network.resolve(host))
        server.port = self.network.listen(server, server.host, port)
        return server

    async def connect_accepted_socket(  # type: ignore[override]
        self, protocol_factory: Callable[[], P], sock: FakeSocket
    ) -> tuple[asyncio.Transport, P]:
        return await self._attach(sock.endpoint, protocol_factory())

    async def _attach(self, endpoint: Endpoint, protocol: P) -> tuple[asyncio.Transport, P]:
        made: asyncio.Future[None] = self.create_future()
        transport = SimulatedTransport(self, endpoint, protocol, made)
        try:
            await made
        except BaseException:
            transport.close()
            raise
        return transport, protocol


class SimulatedClock:
    """The loop's time for record timestamps (``aioproducer.timing.clock.Clock``).

    ``jump()`` returns the new offset of the wall clock in seconds, or 0 for no change.
    """

    def __init__(self, loop: SimulatedLoop, jump: Callable[[], float]) -> None:
        self._loop = loop
        self._jump = jump
        self._off = 0.0

    def monotonic(self) -> float:
        return self._loop.exact_time()

    def time_ms(self) -> int:
        self._off = self._jump() or self._off
        return EPOCH_MS + int((self._loop.exact_time() + self._off) * 1000)
