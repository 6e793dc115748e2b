"""Opens and closes listeners while a node runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.configs.listeners import Listeners
from aioproducer.broker.network.gate.connection_gate import ConnectionGate
from aioproducer.broker.network.socket_server import SocketServer
from aioproducer.errors import ConfigException
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)

_LAST_ANSWERS = 1.0
"""Seconds that clients of a closing listener have to receive their responses."""


class ListenerChanges:
    """Makes a running node's listeners follow its configs (Kafka's ``DynamicListenerConfig``).

    A task runs while there is something to do: it closes and opens one listener after the other. The AlterConfigs
    request is answered before, as in Kafka, so a listener that cannot be opened is logged as an error and raised by
    :meth:`settled`; the next change of configs tries again. ``on_change`` is called when the addresses that clients get
    have changed.
    """

    def __init__(
        self,
        node_id: int,
        host: str,
        sockets: SocketServer,
        gate: ConnectionGate,
        clock: Clock,
        on_change: Callable[[], object],
    ) -> None:
        """``host`` is the host of listeners that name none."""
        self._node_id = node_id
        self._host = host
        self._sockets = sockets
        self._gate = gate
        self._now = clock.monotonic
        self._on_change = on_change
        self._wanted: dict[str, EndPoint] = {}
        self._failed: dict[str, Exception] = {}
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def follow(self, listening: Listeners) -> None:
        """Starts to make the node listen there."""
        if self._closed:
            return
        self._wanted = {
            end_point.listener: end_point._replace(host=end_point.host or self._host)
            for end_point in listening.of_node(self._node_id)
        }
        self._failed.clear()
        self._on_change()  # so that clients are not sent to a closing listener
        if self._task is None and self._wanted.keys() != self._sockets.acceptors.keys():
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"listeners-of-node-{self._node_id}")

    async def settled(self) -> None:
        """Returns when all changes are made. Raises the OSError or ConfigException of a listener that failed."""
        while self._task is not None:
            await asyncio.wait([self._task])
        for error in self._failed.values():
            raise error

    async def close(self) -> None:
        """Stops; no listener changes after that."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while True:
                opened = self._sockets.acceptors
                gone = next((name for name in opened if name not in self._wanted), None)
                new = next((name for name in self._wanted if name not in opened and name not in self._failed), None)
                if gone is not None:
                    await self._close(gone)
                elif new is not None:
                    await self._open(self._wanted[new])
                else:
                    return
        finally:
            self._task = None

    async def _open(self, end_point: EndPoint) -> None:
        self._gate.open_listener(end_point.listener)
        try:
            await self._sockets.open_listener(end_point)
        except (OSError, ConfigException) as error:
            self._gate.remove_listener(end_point.listener)
            log.error("node %d cannot open listener %s: %s", self._node_id, end_point.listener, error)
            self._failed[end_point.listener] = error
        else:
            self._on_change()

    async def _close(self, listener: str) -> None:
        # A waiting connection would be admitted as soon as another one closes. No connection comes after these, because
        # close_listener closes the port first.
        self._gate.turn_away(listener)
        await self._sockets.close_listener(listener, self._now() + _LAST_ANSWERS)
        self._gate.remove_listener(listener)
