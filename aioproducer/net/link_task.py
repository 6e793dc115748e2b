"""The task that keeps a connection to a broker while one is needed."""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import os
import re
import socket
import ssl
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from aioproducer.build_info import __version__
from aioproducer.configs.client_config import ClientConfig
from aioproducer.errors import AuthenticationException, KafkaError, NetworkException, TimeoutException, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.metrics.network_metrics import NetworkMetrics
from aioproducer.net.broker_link import BrokerLink, LinkState
from aioproducer.net.connection.connection import Connection
from aioproducer.net.connection.connection_protocol import ConnectionProtocol
from aioproducer.net.connection.node_api_versions import NodeApiVersions
from aioproducer.net.host_addresses import in_turn, resolve
from aioproducer.net.security.security import ClientSecurity
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aioproducer.timing.backoff import ExponentialBackoff
from aioproducer.timing.loop_clock import LoopClock

if TYPE_CHECKING:
    from aioproducer.net.security.sasl_clients import AnyCredentials

log = logging.getLogger(__name__)

# Brokers refuse versions with other characters than these (a local version has a +).
SOFTWARE_VERSION = re.sub(r"[^a-zA-Z0-9.-]", "-", __version__)

LETS_GO: Final = 0.1
"""Seconds in which an event loop lets go of a socket that has nothing left to send."""

REAUTHENTICATION_INTERVAL: Final = 1.01
"""The least seconds between two renewals of a session: brokers refuse a second one within a second by their own clock
(Kafka's ``KafkaChannel``)."""


class LinkTask:
    """Connects a link on demand, learns the broker's API versions, authenticates, and reports each change of state.

    The name is resolved for every attempt, and socket.connection.setup.timeout.ms applies to each address: one that
    never answers does not block the next.

    After a lost connection or a failed attempt it backs off (reconnect.backoff.ms, doubling) and is idle again: it
    reconnects only if a connection is still wanted. It logs once when a broker cannot be reached, and once when it is
    reached again. ``on_crash(error)`` reports bugs in the loop's callbacks. ``spare_buffers`` are those of all
    links of the client (:class:`Connection`).
    """

    def __init__(
        self,
        link: BrokerLink,
        config: ClientConfig,
        random: Random,
        *,
        security: ClientSecurity,
        on_crash: Callable[[BaseException], None],
        metrics: NetworkMetrics,
        spare_buffers: list[bytearray],
    ) -> None:
        self._link = link
        self._config = config
        self._security = security
        self._session_due: float | None = None
        """When the session must be renewed."""
        self._renewable_at = -math.inf
        """When the broker accepts the next renewal."""
        self._backoff = ExponentialBackoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, random)
        self._on_crash = on_crash
        self._metrics = metrics
        self._spare_buffers = spare_buffers
        self._last_host: str | None = None
        self._lost = asyncio.Event()
        self._answers_to_connect = 0
        self._unreached = 0
        """Attempts to connect that failed in a row. The loss of a connection is none: the first attempt after it has
        socket.connection.setup.timeout.ms, as in Kafka (KIP-601)."""
        self._reported = False
        self._loop = asyncio.get_running_loop()
        self._clock = LoopClock(self._loop)

    async def run(self) -> None:
        """Runs until cancelled."""
        link = self._link
        while True:
            link.change(LinkState.IDLE)
            await link.wanted.wait()
            link.wanted.clear()
            link.change(LinkState.CONNECTING)
            try:
                await self._connect()
            except KafkaError as error:
                link.unreached = True
                self._unreached += 1
                self._failed(error)
            else:
                link.unreached = False
                self._unreached = 0
                await self._serve()
            wait = self._backoff.wait(link.failures)
            link.backoff_until = self._loop.time() + wait
            link.change(LinkState.BACKOFF)
            await asyncio.sleep(wait)

    def _failed(self, error: KafkaError) -> None:
        self._link.failures += 1
        self._link.last_error = error
        if not self._reported:
            self._reported = True
            fields = self._fields("broker_unreachable", error)
            log.warning("%s cannot be reached: %s; trying again", self._link, error, extra={"kafka": fields})

    def _fields(self, event: str, error: KafkaError | None = None) -> dict[str, object]:
        """For machines that read the log (docs/services.md)."""
        fields: dict[str, object] = {"event": event, "node": self._link.node_id, "broker": str(self._link.address)}
        if error is not None:
            fields["error"] = type(error).__name__
        return fields

    async def _connect(self) -> None:
        """Connects to the first address of the host that accepts; NetworkException or TimeoutException if none does."""
        config = self._config
        longest = config.socket_connection_setup_timeout_max_ms / 1000
        allowed = min(config.socket_connection_setup_timeout_ms / 1000 * 2 ** min(self._unreached, 20), longest)
        try:
            async with asyncio.timeout(allowed):
                hosts = in_turn(await resolve(self._link.address), self._last_host)
        except (OSError, ValueError) as error:
            raise self._explained(error, allowed) from error
        credentials = await self._security.credentials(self._link.address.host)
        for host in hosts:
            try:
                return await self._connect_to(host, allowed, credentials)
            except (NetworkException, TimeoutException) as error:
                if host == hosts[-1]:
                    raise
                log.debug("%s at %s: %s; trying its next address", self._link, host, error)

    async def _connect_to(self, host: str, allowed: float, credentials: AnyCredentials | None) -> None:
        self._lost.clear()
        connection = self._new_connection()
        try:
            async with asyncio.timeout(allowed):
                transport, _ = await self._loop.create_connection(
                    lambda: ConnectionProtocol(connection),
                    host,
                    self._link.address.port,
                    **await self._security.transport_options(self._link.address),
                )
                self._tune(transport.get_extra_info("socket"))
                await self._negotiate(connection)
                await self._authenticate(connection, credentials)
            if connection.error is not None:  # lost in the same tick in which it became usable
                raise connection.error
        except (OSError, OverflowError, KafkaError, asyncio.CancelledError) as error:
            # However far it got, nothing may stay open.
            reason = self._security.refusal(str(self._link), error) or self._explained(error, allowed)
            if isinstance(reason, AuthenticationException):
                self._metrics.authentications.failed(self._loop.time())
            connection.close(reason)
            if reason is error or isinstance(error, asyncio.CancelledError):
                raise
            raise reason from error
        self._renewable_at = -math.inf
        if self._security.is_secure:
            self._metrics.authentications.authenticated(self._loop.time())
        self._answers_to_connect = connection.answers
        self._last_host = host
        self._link.connection = connection

    def _explained(self, error: BaseException, allowed: float) -> KafkaError:
        if isinstance(error, KafkaError):
            return self._hung_up(error)
        if isinstance(error, TimeoutError):
            return TimeoutException(
                f"{self._link} was not ready within {allowed * 1000:.0f} ms (socket.connection.setup.timeout.ms): "
                f"does a Kafka broker listen there, and with security.protocol={self._config.security_protocol}?"
            )
        if isinstance(error, asyncio.CancelledError):
            return NetworkException(f"the client stopped while it connected to {self._link}")
        # Not only OSError: a host name may be invalid (UnicodeError), and a port from a broker's metadata out of range.
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        if isinstance(error, ConnectionRefusedError):
            why = os.strerror(errno.ECONNREFUSED)  # asyncio and uvloop word it differently
        if isinstance(error, socket.gaierror) and self._link.node_id >= 0:
            why += "; the cluster gave this address for the node: see advertised.listeners of the broker"
        failed = NetworkException(f"cannot connect to {self._link}: {why}")
        ended = isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError | ssl.SSLError)
        return self._hung_up(failed) if ended else failed

    def _hung_up(self, error: KafkaError) -> KafkaError:
        """The error for a connection that ended during the first request or the TLS handshake."""
        if not isinstance(error, NetworkException):
            return error
        protocol = self._config.security_protocol
        hinting = NetworkException(f"{error}; does its listener expect security.protocol={protocol}?")
        hinting.__cause__ = error.__cause__
        return hinting

    def _new_connection(self) -> Connection:
        return Connection(
            str(self._link),
            client_id=self._config.client_id,
            request_timeout=self._config.request_timeout_ms / 1000,
            send_buffer=self._config.send_buffer_bytes,
            # At most one request waits for the socket, so a slow broker takes up no more of our memory.
            write_buffer=self._config.max_request_size,
            on_closed=self._connection_closed,
            on_room=self._has_room,
            on_throttled=self._link.throttle,
            on_crash=self._on_crash,
            metrics=self._metrics.node(self._link.node_id),
            spare_buffers=self._spare_buffers,
        )

    def _tune(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._config.send_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._config.send_buffer_bytes)
        if self._config.receive_buffer_bytes >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._config.receive_buffer_bytes)

    async def _negotiate(self, connection: Connection) -> None:
        request = ApiVersionsRequest(client_software_name="aioproducer", client_software_version=SOFTWARE_VERSION)
        newest = ApiVersionsRequest.MAX_VERSION
        asked = self._clock.fine()
        response = await connection.call(request, ApiVersionsResponse, newest)
        self._link.greeting = self._clock.fine() - asked
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            spoken = {api.api_key: api.max_version for api in response.api_keys}
            older = min(spoken.get(ApiKey.API_VERSIONS, 0), newest)
            response = await connection.call(request, ApiVersionsResponse, older)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, f"{self._link} refused to report its API versions")
        self._link.api_versions = NodeApiVersions(str(self._link), response)

    async def _authenticate(self, connection: Connection, credentials: AnyCredentials | None) -> None:
        again_in = await self._security.authenticate(
            connection, self._link.api_versions, credentials, self._link.address.host
        )
        self._session_due = None if again_in is None else self._clock.tick(self._loop.time() + again_in)

    async def _reauthenticate(self, connection: Connection) -> None:
        """Open requests are answered meanwhile, and no other is sent: the broker would refuse it. A session so short
        that the broker will not renew it yet expires, and is renewed a little later. Renewal does not count as use: an
        idle connection stays idle, and is closed when its time is over.
        """
        try:
            # Sending continues until there is a token.
            credentials = await self._security.credentials(self._link.address.host)
        except KafkaError as error:
            connection.close(error)
        if connection.error is not None:
            return
        idle_since = None if connection.in_flight else connection.last_active
        answers_due = connection.answers + len(connection.in_flight)
        self._link.reauthenticating = True
        try:
            if self._loop.time() < self._renewable_at and await self._is_lost_by(self._renewable_at):
                return
            began = self._loop.time()
            await self._authenticate(connection, credentials)
        except KafkaError as error:
            if isinstance(error, AuthenticationException):
                self._metrics.authentications.reauthentication_failed(self._loop.time())
            connection.close(error)
        else:
            now = self._loop.time()
            self._renewable_at = now + REAUTHENTICATION_INTERVAL
            self._metrics.authentications.reauthenticated(now - began, now)
        finally:
            self._link.reauthenticating = False
        if connection.error is not None:
            return
        self._answers_to_connect += connection.answers - answers_due
        if idle_since is not None:
            connection.last_active = idle_since
        self._link.changed()

    def _has_room(self) -> None:
        if self._link.ready():  # otherwise only the set-up requests are sent
            self._link.changed()

    def _connection_closed(self, connection: Connection, error: KafkaError) -> None:
        link = self._link
        if link.connection is not connection:
            return  # it was never usable
        link.connection = None
        useful = connection.answers > self._answers_to_connect
        if useful:
            # It was usable, so this is a new failure and not the previous one continuing.
            link.failures = 0
            self._reported = False
        if link.state is LinkState.CLOSED:
            pass
        elif link.resting or (useful and not connection.unsettled and not isinstance(error, AuthenticationException)):
            # Nothing needed it just now, and brokers close idle connections, too. If the broker is gone for good, the
            # next attempt to connect fails.
            link.failures = 1
        else:
            self._failed(error if useful or not connection.unsettled else self._hung_up(error))
        if link.state is LinkState.READY:
            # Reported at once, before the task runs: no caller may send to a lost connection.
            link.change(LinkState.BACKOFF)
        self._lost.set()

    async def _serve(self) -> None:
        """READY until the connection is lost, or has been idle for connections.max.idle.ms."""
        link = self._link
        connection = link.connection
        assert connection is not None
        link.resting = False
        if self._reported:
            log.info("%s is reached again", link, extra={"kafka": self._fields("broker_reached")})
        link.last_error = None
        link.change(LinkState.READY)
        unsent, left_at = 0, self._loop.time()
        while not self._lost.is_set():
            due = self._idle_at(connection)
            if self._session_due is not None:
                due = min(due, self._session_due)
            if await self._is_lost_by(due):
                return
            waiting = connection.unsent()
            if self._session_due is not None and self._loop.time() >= self._session_due:
                await self._reauthenticate(connection)
            elif connection.in_flight or waiting:
                # With acks=0 bytes may be all there is to wait for.
                now = connection.last_active = self._loop.time()
                if connection.in_flight or waiting != unsent:
                    unsent, left_at = waiting, now
                elif now - left_at >= self._config.request_timeout_ms / 1000:
                    connection.close(connection.stuck())
            elif self._loop.time() >= self._idle_at(connection):
                link.resting = True
                idle = self._config.connections_max_idle_ms
                connection.close(NetworkException(f"idle for connections.max.idle.ms={idle}"))

    async def _is_lost_by(self, when: float) -> bool:
        """Waits for the end of the connection, at most until ``when``."""
        try:
            async with asyncio.timeout_at(None if when == math.inf else when):
                await self._lost.wait()
        except TimeoutError:
            return False
        return True

    def _idle_at(self, connection: Connection) -> float:
        """When connections.max.idle.ms will be over."""
        idle = self._config.connections_max_idle_ms
        return math.inf if idle < 0 else self._clock.tick(connection.last_active + idle / 1000)


async def close(link: BrokerLink, grace: float) -> None:
    """Closes for good. What was written (acks=0) gets ``grace`` seconds to leave the socket.

    In this time the requests that have an answer get theirs, too: a system resets a connection that is closed before
    an answer on its way is read, and the broker's system then drops what the broker has not read.
    """
    link.end()
    if (connection := link.connection) is None:
        return
    error = NetworkException(f"the client closed its connection to {connection.peer}")
    if grace > 0.0:
        connection.close_when_answered(error, graceful=True)
    else:
        connection.close(error, graceful=True)
    try:
        await asyncio.wait([connection.ended], timeout=grace)
        if connection.error is None:  # there was no answer
            connection.close(error, graceful=True)
            await asyncio.wait([connection.ended], timeout=LETS_GO)
    finally:
        if not connection.ended.done():
            connection.abort()
    await asyncio.wait([connection.ended])  # the loop lets go of the socket in its next turn
