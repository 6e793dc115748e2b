"""Gates between acceptors and processors: they admit, delay or refuse new connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from aioproducer.broker.network.gate.listening_socket import AcceptedSocket
from aioproducer.broker.network.gate.throttled_sockets import ThrottledSockets
from aioproducer.broker.quotas.connection_quotas import ConnectionLimits, ConnectionQuotas, Decision, Verdict
from aioproducer.timing.clock import Clock


class Gate(Protocol):
    """Stands between a listener and its processors."""

    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        """Judges an accepted connection: calls ``admit(connection, address)``, now or later, or closes it."""

    def depart(self, listener: str, address: str) -> None:
        """An admitted connection has ended."""


class _OpenGate:
    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        admit(connection, address)

    def depart(self, listener: str, address: str) -> None:
        pass


OPEN_GATE: Gate = _OpenGate()
"""Admits every connection."""


class Arrival(NamedTuple):
    """An accepted connection, and the callback that admits it."""

    connection: AcceptedSocket
    admit: Callable[[AcceptedSocket, str], object]


class ConnectionGate:
    """The gate of a node: carries out what :class:`ConnectionQuotas` decides. Acceptors never wait for it.

    ``make_room(count)`` closes that many of the least active connections, and returns how many it is closing.
    """

    def __init__(self, quotas: ConnectionQuotas[Arrival], clock: Clock, make_room: Callable[[int], int]) -> None:
        self.quotas = quotas
        self._now = clock.monotonic
        self._make_room = make_room
        self._leaving = 0
        self._throttled = ThrottledSockets(clock.monotonic)
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        if self._closed:
            connection.close()
            return
        self._carry_out(self.quotas.arrive(listener, address, Arrival(connection, admit), self._now()))

    def depart(self, listener: str, address: str) -> None:
        self.quotas.depart(listener, address)
        self._leaving = max(self._leaving - 1, 0)
        self._take_turns()

    def open_listener(self, name: str) -> None:
        """Adds a listener."""
        self.quotas.add_listener(name)
        self._take_turns()

    def turn_away(self, listener: str) -> None:
        """Closes all connections that wait for this listener."""
        self._carry_out(self.quotas.leave_room(listener))

    def remove_listener(self, name: str) -> None:
        """Removes a listener that has no connections left."""
        self.quotas.remove_listener(name)
        self._take_turns()

    def configure(self, limits: ConnectionLimits) -> None:
        """Changes the limits."""
        self.quotas.configure(limits)
        self._take_turns()

    @property
    def throttled(self) -> int:
        """How many connections are kept open only to be closed later."""
        return len(self._throttled)

    def close(self) -> None:
        """Closes all waiting connections, and every later one."""
        self._closed = True
        self._carry_out(self.quotas.leave_room())
        self._throttled.close()

    def _take_turns(self) -> None:
        if not self._closed:
            self._carry_out(self.quotas.turn(self._now()))

    def _carry_out(self, decisions: list[Decision[Arrival]]) -> None:
        for _, address, (connection, admit), verdict, delay_ms in decisions:
            if verdict is Verdict.ADMITTED:
                admit(connection, address)
            elif verdict is Verdict.THROTTLED:
                self._throttled.add(connection, delay_ms / 1000)
            else:
                connection.close()
        too_many = self.quotas.excess - self._leaving
        if too_many > 0:
            self._leaving += self._make_room(too_many)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._now()
        turn = None if self._closed else self.quotas.next_turn(now)
        if turn is not None:
            self._timer = asyncio.get_running_loop().call_later(turn - now, self._take_turns)
