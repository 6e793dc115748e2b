"""A node's listeners, and what connects them with its request handlers."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from random import Random
from typing import Final

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.network.acceptor import Acceptor
from aioproducer.broker.network.channel.memory_pool import MemoryPool
from aioproducer.broker.network.channel.unread_responses import UnreadResponses
from aioproducer.broker.network.closed_connections import ClosedConnections
from aioproducer.broker.network.gate.connection_gate import OPEN_GATE, Gate
from aioproducer.broker.network.gate.listening_socket import Listen, listen
from aioproducer.broker.network.processor import Processor
from aioproducer.broker.requests.request import Quotas, Request
from aioproducer.broker.requests.request_channel import RequestChannel
from aioproducer.broker.requests.response import RequestEnd
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.security.listener_security import ListenerSecurity
from aioproducer.broker.security.scram_credentials import ScramCredentials
from aioproducer.timing.clock import Clock

log = logging.getLogger(__name__)

NOTHING_TO_WAIT_FOR: Final[Mapping[str, Awaitable[object]]] = {}


class SocketServer:
    """Kafka's class of this name: for each listener an :class:`Acceptor` and ``num.network.threads`` processors, for
    all of them one :class:`RequestChannel`. Opened and closed once.

    :meth:`open` opens the ports; no client is admitted before :meth:`enable_request_processing`.
    """

    def __init__(
        self,
        node_id: int,
        config: BrokerConfig,
        clock: Clock,
        *,
        is_supported: Callable[[int, int], bool],
        gate: Gate = OPEN_GATE,
        quotas: Quotas | None = None,
        listen: Listen = listen,
        random: Random | None = None,
        scram_credentials: ScramCredentials | None = None,
        slices: Slices | None = None,
        on_complete: Callable[[Request, RequestEnd, float], object] | None = None,
    ) -> None:
        self._node_id = node_id
        self._config = config
        self._clock = clock
        self._is_supported = is_supported
        self._gate = gate
        self._listen = listen
        self._scram = ScramCredentials() if scram_credentials is None else scram_credentials
        self._processor_ids = itertools.count()
        self._connection_indexes = itertools.count()
        self._closings: dict[asyncio.Task[None], None] = {}
        self._closed_connections = ClosedConnections()
        self._enabled = False
        self._all_ready = False
        self.acceptors: dict[str, Acceptor] = {}
        """By listener."""
        self.securities: dict[str, ListenerSecurity] = {}
        """By listener."""
        self._leaving: list[Acceptor] = []
        """The acceptors of listeners that are being closed while the others stay open."""
        self.memory = MemoryPool(config.queued_max_request_bytes, random or Random(), clock)
        self._unread = UnreadResponses()
        self._slices = slices or Slices(clock)
        self.requests = RequestChannel(config.queued_max_requests, clock, quotas, on_complete)

    async def open(self, end_points: Iterable[EndPoint]) -> dict[str, EndPoint]:
        """Opens all ports or none; returns the listeners' addresses. Port 0 in ``end_points`` picks a free one."""
        try:
            for end_point in end_points:
                await self.open_listener(end_point)
        except BaseException:
            await self.close()
            raise
        return self.end_points

    async def open_listener(self, end_point: EndPoint) -> None:
        """Adds a listener. Raises OSError, or :class:`ConfigException` if its configs are invalid."""
        config, listener = self._config, end_point.listener
        security = ListenerSecurity(listener, config, self._scram)
        await security.start()
        try:
            listening = await self._listen(
                end_point.host,
                end_point.port,
                backlog=config.socket_listen_backlog_size,
                receive_buffer=config.socket_receive_buffer_bytes,
            )
        except BaseException:
            await security.close()
            raise
        acceptor = Acceptor(
            end_point._replace(port=listening.port),
            security.protocol,
            listening,
            self._gate,
            self._clock,
            send_buffer=config.socket_send_buffer_bytes,
        )
        self.acceptors[listener], self.securities[listener] = acceptor, security
        self._resize(acceptor, self._config.network_threads(listener))
        if self._all_ready:
            acceptor.start()

    async def close_listener(self, listener: str, deadline: float) -> None:
        """Removes a listener. Its port is closed at once, its connections when their requests are answered, at
        ``deadline`` at the latest."""
        acceptor = self.acceptors.pop(listener)
        security = self.securities.pop(listener)
        self._leaving.append(acceptor)
        acceptor.close()
        processors = tuple(acceptor.processors)
        for processor in processors:
            processor.stop_reading()
        await self._flush(processors, lambda: all(processor.is_answered for processor in processors), deadline)
        await self._close_acceptor(acceptor)
        await self._wait_closed()
        self._leaving.remove(acceptor)
        await security.close()
        self._log_failed_logins(security)

    async def enable_request_processing(self, ready: Mapping[str, Awaitable[object]] = NOTHING_TO_WAIT_FOR) -> None:
        """Admits clients; to a listener in ``ready``, when its awaitable is done.

        Returns when all listeners admit clients, including those opened meanwhile. Raises what ``ready`` raises.
        """
        self._enabled = True
        for acceptor in self.acceptors.values():
            for processor in acceptor.processors:
                processor.start()
        create_task = asyncio.get_running_loop().create_task
        starting: list[asyncio.Task[None]] = []
        for listener, acceptor in self.acceptors.items():
            if listener in ready:
                starting.append(create_task(self._start_when(acceptor, ready[listener])))
            else:
                acceptor.start()
        if starting:
            try:
                await asyncio.gather(*starting)
            finally:
                for task in starting:
                    task.cancel()
                await asyncio.wait(starting)
        self._all_ready = True
        for acceptor in self.acceptors.values():
            if not acceptor.is_started:
                acceptor.start()

    async def _start_when(self, acceptor: Acceptor, ready: Awaitable[object]) -> None:
        await ready
        if self.acceptors.get(acceptor.end_point.listener) is acceptor:  # else it was closed meanwhile
            acceptor.start()

    def validate_reconfiguration(self, config: BrokerConfig) -> None:
        """Raises :class:`ConfigException` if a listener cannot have these configs."""
        for listener in config.listening.names:
            if listener in self.securities:
                self.securities[listener].validate_reconfiguration(config)
            else:
                ListenerSecurity(listener, config, self._scram)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Applies the configs that may change while it runs, except which listeners there are."""
        self._config = config
        for listener, acceptor in self.acceptors.items():
            self._resize(acceptor, config.network_threads(listener))
            self.securities[listener].reconfigure(config)

    @property
    def end_points(self) -> dict[str, EndPoint]:
        """The addresses of the open listeners."""
        return {listener: acceptor.end_point for listener, acceptor in self.acceptors.items()}

    @property
    def processors(self) -> list[Processor]:
        """The processors of all listeners."""
        return [processor for acceptor in self._all_acceptors for processor in acceptor.processors]

    @property
    def _all_acceptors(self) -> list[Acceptor]:
        return [*self.acceptors.values(), *self._leaving]

    def is_urgent(self) -> bool:
        """Whether requests wait to be handled, or responses to be written."""
        return self.requests.waits or not all(processor.is_idle for processor in self.processors)

    def close_least_active(self, count: int, spared: str | None = None) -> int:
        """Closes up to ``count`` connections, the least active first, except those of the listener ``spared``.

        Returns how many it closes.
        """
        eldest = [
            channel
            for name, acceptor in self.acceptors.items()
            if name != spared
            for processor in acceptor.processors
            for channel in itertools.islice(processor.open_channels(), count)
        ]
        found = heapq.nsmallest(count, eldest, key=lambda channel: channel.last_active)
        for channel in found:
            channel.abort()
        return len(found)

    @property
    def connection_count(self) -> int:
        return sum(processor.connection_count for processor in self.processors)

    def stop_accepting(self) -> None:
        """Closes the ports, and reads no more requests."""
        for acceptor in self._all_acceptors:
            acceptor.close()
        for processor in self.processors:
            processor.stop_reading()

    async def drain(self, idle: Callable[[], bool], deadline: float) -> None:
        """Returns when all received requests are answered, as far as possible, or at ``deadline``.

        ``idle`` returns whether the handlers have nothing to do.
        """
        processors = self.processors
        await self._flush(processors, lambda: idle() and all(processor.is_idle for processor in processors), deadline)

    async def _flush(self, processors: Iterable[Processor], rested: Callable[[], bool], deadline: float) -> None:
        """Returns when ``rested()`` is true and all responses are written, or at ``deadline``."""
        try:
            async with asyncio.timeout(max(0.0, deadline - self._clock.monotonic())):
                while not rested():
                    await self.requests.rest()
                for processor in processors:
                    await processor.flush()
        except TimeoutError:
            pass  # a handler waits, or a client does not read

    def abort(self) -> None:
        """Drops all connections, as a crash does: nothing more is read, handled or written. Call :meth:`close` then."""
        for processor in self.processors:
            processor.abort()

    async def close(self) -> None:
        """Closes the ports and drops every connection."""
        for acceptor in self._all_acceptors:
            acceptor.close()
        for acceptor in self._all_acceptors:
            await self._close_acceptor(acceptor)
        await self._wait_closed()
        for security in self.securities.values():
            await security.close()
            self._log_failed_logins(security)
        for line in self._closed_connections.rest(self._clock.monotonic()):
            log.warning("%s", line)

    def _log_failed_logins(self, security: ListenerSecurity) -> None:
        for line in security.failed_logins.rest(self._clock.monotonic()):
            log.warning("%s", line)

    async def _close_acceptor(self, acceptor: Acceptor) -> None:
        await acceptor.wait_closed()
        self._resize(acceptor, 0)

    async def _wait_closed(self) -> None:
        """Returns when no processor is being closed."""
        if self._closings:
            await asyncio.wait(tuple(self._closings))

    def _resize(self, acceptor: Acceptor, size: int) -> None:
        processors, listener = acceptor.processors, acceptor.end_point.listener
        config = self._config
        while len(processors) < size:
            id = next(self._processor_ids)
            security = self.securities[listener]
            processor = Processor(
                id,
                f"data-plane-kafka-network-thread-{self._node_id}-{listener}-{security.protocol}-{id}",
                listener,
                self.requests,
                self._gate,
                self._clock,
                is_supported=self._is_supported,
                next_connection_index=self._connection_indexes.__next__,
                log_close=self._log_close,
                security=security,
                max_idle_ms=config.connections_max_idle_ms,
                receive_timeout_ms=config.socket_request_receive_timeout_ms,
                memory=self.memory,
                unread=self._unread,
                slices=self._slices,
            )
            self.requests.add_processor(id, processor)
            processors.append(processor)
            if self._enabled:
                processor.start()
        while len(processors) > size:
            processor = processors.pop()
            processor.new_connections.close()
            while size and processor.new_connections:  # the remaining processors take them over
                acceptor.hand_over(*processor.new_connections.take())
            closing = asyncio.get_running_loop().create_task(self._close(processor))
            self._closings[closing] = None
            closing.add_done_callback(self._closed)

    def _log_close(self, connection_id: str, reason: str) -> None:
        for line in self._closed_connections.closed(connection_id, reason, self._clock.monotonic()):
            log.warning("%s", line)

    async def _close(self, processor: Processor) -> None:
        await processor.close()
        self.requests.remove_processor(processor.id)

    def _closed(self, closing: asyncio.Task[None]) -> None:
        self._closings.pop(closing, None)
