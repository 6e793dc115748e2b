"""Turns an admitted socket into a channel."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any

from aioproducer.broker.network.channel.kafka_channel import KafkaChannel
from aioproducer.broker.network.gate.connection_gate import Gate
from aioproducer.broker.network.gate.listening_socket import AcceptedSocket
from aioproducer.broker.network.gate.new_connections import NewConnection
from aioproducer.broker.security.listener_security import ListenerSecurity
from aioproducer.broker.security.tls_handshake import accept_tls
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)


class ChannelBuilder:
    """Makes the channels of one processor. Kafka's classes of this name.

    Each connection has a task of its own, so no other connection waits for a slow TLS handshake.
    """

    def __init__(
        self,
        name: str,
        listener: str,
        security: ListenerSecurity,
        gate: Gate,
        clock: Clock,
        *,
        channel: Callable[[str], KafkaChannel],
        log_close: Callable[[str, str], object],
    ) -> None:
        """``channel`` makes a channel for a client at an address."""
        self._name = name
        self._listener = listener
        self._security = security
        self._gate = gate
        self._now = clock.monotonic
        self._channel = channel
        self._log_close = log_close
        self._building: dict[asyncio.Task[None], None] = {}
        self._aborted = False

    def build(self, connection: NewConnection) -> None:
        """Starts to make a channel, which calls ``channel_opened`` of its owner when it is connected."""
        task = asyncio.get_running_loop().create_task(self._build(connection), name=self._name)
        self._building[task] = None
        task.add_done_callback(self._built)

    def drop(self, connection: NewConnection) -> None:
        """Closes a connection that has no channel."""
        connection.socket.close()
        self._gate.depart(self._listener, connection.address)

    def abort(self) -> None:
        """Cancels the handshakes under way; :meth:`wait_closed` waits for their ends."""
        self._aborted = True
        for task in self._building:
            # In the next turn of the loop: a task cancelled before it begins never runs its cleanup, and asyncio
            # registers the socket of a new transport one turn later, even if the transport is closed by then.
            asyncio.get_running_loop().call_soon(task.cancel)

    async def wait_closed(self) -> None:
        """Returns when no connection is being made."""
        if self._building:
            await asyncio.wait(tuple(self._building))

    async def _build(self, connection: NewConnection) -> None:
        opened = False
        try:
            if not self._aborted:
                channel = self._channel(connection.address)
                try:
                    await self._connect(channel, connection.socket)
                finally:
                    opened = channel.was_opened
        except OSError as error:
            if isinstance(error, ssl.SSLError):
                self._security.metrics.failed(self._now(), again=False)
            problem = str(error) or type(error).__name__
            self._log_close(connection.address, f"it was lost before it was established: {problem}")
        except Exception:
            log.exception("a new connection from %s on listener %s failed", connection.address, self._listener)
        finally:
            if not opened:
                self.drop(connection)

    async def _connect(self, channel: KafkaChannel, accepted: AcceptedSocket) -> None:
        loop: Any = asyncio.get_running_loop()  # the simulation's takes sockets of its own
        if self._security.uses_tls:
            await accept_tls(loop, lambda: channel, accepted, await self._security.transport_options())
        else:
            await loop.connect_accepted_socket(lambda: channel, accepted)

    def _built(self, task: asyncio.Task[None]) -> None:
        del self._building[task]
