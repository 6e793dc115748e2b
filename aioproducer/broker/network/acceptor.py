"""Accepts connections and hands them to processors."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque

from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.network.gate.connection_gate import Gate
from aioproducer.broker.network.gate.listening_socket import AcceptedSocket, Listening
from aioproducer.broker.network.idle_meter import IdleMeter
from aioproducer.broker.network.processor import Processor
from aioproducer.timing.clock import Clock
from aioproducer.timing.log_interval import LogInterval

log = logging.getLogger(__name__)

_AFTER_AN_ERROR = 0.1
"""Seconds before the next attempt to accept after an error, such as too few file descriptors."""


class Acceptor:
    """One task for each listener: accepts connections and distributes them. Kafka's class of this name.

    An error of one connection does not stop it. A processor with too many new connections is skipped; if all have too
    many, the acceptor waits for one of them and accepts nothing meanwhile. So no admitted connection is dropped.
    """

    def __init__(
        self, end_point: EndPoint, protocol: str, listening: Listening, gate: Gate, clock: Clock, *, send_buffer: int
    ) -> None:
        self.end_point = end_point
        self._listener = end_point.listener
        self._name = f"data-plane-kafka-socket-acceptor-{end_point.listener}-{protocol}-{end_point.port}"
        self._listening = listening
        self._gate = gate
        self._now = clock.monotonic
        self._send_buffer = send_buffer
        self.processors: list[Processor] = []
        self._next = 0
        # Admitted while every processor had too many new connections.
        self._unassigned: deque[tuple[AcceptedSocket, str]] = deque()
        self._assigning: asyncio.Task[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._log_interval = LogInterval()
        # At rest while it accepts, at work while all processors have too many new connections.
        now = clock.monotonic()
        self._accepting = IdleMeter(now)
        self._accepting.rest(now)

    def blocked_percent(self, now: float) -> float:
        """The share of the time, 0 to 1, during which it accepted nothing because all processors had too many new
        connections (Kafka's ``AcceptorBlockedPercent``)."""
        return 1.0 - self._accepting.share(1, now)

    @property
    def is_started(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    def close(self) -> None:
        """Closes the port, and drops connections that no processor has taken."""
        self._listening.close()
        for task in (self._task, self._assigning):
            if task is not None:
                task.cancel()
        while self._unassigned:
            self._drop(*self._unassigned.popleft())

    async def wait_closed(self) -> None:
        """Returns when its tasks have ended."""
        tasks = [task for task in (self._task, self._assigning) if task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self) -> None:
        while True:
            if self._assigning is not None:
                await asyncio.wait([self._assigning])
            try:
                connection, (address, _) = await self._listening.accept()
            except OSError as error:
                self._failed(error)
                await asyncio.sleep(_AFTER_AN_ERROR)
                continue
            try:
                self._gate.arrive(self._listener, address, connection, self.assign)
            except Exception:
                log.exception("a new connection from %s on listener %s failed", address, self._listener)
                connection.close()
            # So that a storm of connections does not block the event loop.
            await asyncio.sleep(0)

    def _failed(self, error: OSError) -> None:
        self._failures += 1
        now = self._now()
        if now >= self._log_interval.next(error.errno):
            self._log_interval.logged(error.errno, now)
            log.warning(
                "accepting a connection on listener %s failed (failures so far: %d): %s",
                self._listener,
                self._failures,
                error,
            )

    def assign(self, connection: AcceptedSocket, address: str) -> None:
        """Hands an admitted connection to the next processor; waits for one if all have too many."""
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._send_buffer >= 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer)
        except OSError as error:
            log.info("a new connection from %s on listener %s was lost: %s", address, self._listener, error)
            self._drop(connection, address)
            return
        self.hand_over(connection, address)

    def hand_over(self, connection: AcceptedSocket, address: str) -> None:
        """As :meth:`assign`, for a socket whose options are set: one that a closing processor gives back."""
        if self._unassigned or not self._offer(connection, address):
            self._unassigned.append((connection, address))
            if self._assigning is None:
                self._assigning = asyncio.get_running_loop().create_task(self._assign(), name=f"{self._name}-blocked")

    async def _assign(self) -> None:
        self._accepting.work(self._now())
        while self._unassigned:
            if self._offer(*self._unassigned[0]):
                self._unassigned.popleft()
            else:
                await self.processors[self._next].new_connections.has_room()
        self._accepting.rest(self._now())
        self._assigning = None

    def _offer(self, connection: AcceptedSocket, address: str) -> bool:
        for _ in range(len(self.processors)):
            self._next = (self._next + 1) % len(self.processors)
            if self.processors[self._next].new_connections.offer(connection, address):
                return True
        return False

    def _drop(self, connection: AcceptedSocket, address: str) -> None:
        connection.close()
        self._gate.depart(self._listener, address)
