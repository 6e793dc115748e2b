"""One broker, and the task that keeps a connection to it when one is wanted."""

from __future__ import annotations

import asyncio
import logging
import math
import re
import socket
from collections.abc import Callable
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from random import Random
from typing import Final, TypeVar, final

from aioproducer.backoff import backoff
from aioproducer.config import ClientConfig
from aioproducer.error_code import ErrorCode
from aioproducer.errors import KafkaError, NetworkException, TimeoutException, UnsupportedVersionException, error_for
from aioproducer.metrics.network_metrics import NetworkMetrics
from aioproducer.net.addresses import Address
from aioproducer.net.connection import Connection, Handler
from aioproducer.net.connection_protocol import ConnectionProtocol
from aioproducer.net.host_addresses import in_turn, resolve
from aioproducer.protocol.api_keys import ApiKey
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from aioproducer.protocol.schema import Request, Response

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)

try:
    # Brokers refuse versions with other characters than these (a local version has a +).
    SOFTWARE_VERSION = re.sub(r"[^a-zA-Z0-9.-]", "-", version("aioproducer"))
except PackageNotFoundError:
    SOFTWARE_VERSION = "0"


class LinkState(Enum):
    """IDLE → CONNECTING → READY → BACKOFF → IDLE; CONNECTING → BACKOFF; any → CLOSED."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    BACKOFF = "backoff"
    CLOSED = "closed"


_READY: Final = LinkState.READY  # asked for several times a request: to look a member up takes a while


@final
class BrokerLink:
    """Connects when asked to (``want``), learns what the broker speaks, and tells each change of state.

    The name is resolved for every attempt, and each of its addresses has socket.connection.setup.timeout.ms: one that
    swallows everything does not keep it from the next.

    After a connection is lost or could not be made, it waits (reconnect.backoff.ms, doubling) and is idle again: it
    connects anew only if somebody still wants it. The log hears of a broker once when it cannot be reached, and once
    when it can be again.
    """

    def __init__(
        self,
        node_id: int,
        address: Address,
        config: ClientConfig,
        random: Random,
        *,
        on_change: Callable[[BrokerLink], None],
        on_crash: Callable[[BaseException], None],
        metrics: NetworkMetrics,
    ) -> None:
        self.node_id = node_id
        self.address = address
        self.state = LinkState.IDLE
        self.last_error: KafkaError | None = None
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        """The levels that the cluster has finalized, by name (KIP-584)."""
        self.throttled_until = 0.0
        self.max_in_flight = config.max_in_flight_requests_per_connection
        self.changed_at = -math.inf
        """Since when it is in its state."""
        self.backoff_until = -math.inf
        self._config = config
        self._random = random
        self._on_change = on_change
        self._on_crash = on_crash
        self._metrics = metrics
        self._connection: Connection | None = None
        self._last_host: str | None = None
        self._wanted = asyncio.Event()
        self._lost = asyncio.Event()
        self._answers_to_connect = 0
        self._failures = 0
        self._reported = False
        self._resting = False
        self._unthrottle: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def __str__(self) -> str:
        return f"{self.address}" + (f" (node {self.node_id})" if self.node_id >= 0 else "")

    def want(self) -> None:
        """Connect, if it is not being done."""
        if self.state is LinkState.IDLE:
            self._wanted.set()

    def ready(self) -> bool:
        return self.state is _READY

    def load(self) -> tuple[bool, int]:
        """What is least where a request is answered soonest: a throttled link comes after all others."""
        return self.throttled_until > self._loop.time(), self.in_flight()

    def in_flight(self) -> int:
        return 0 if self._connection is None else len(self._connection.in_flight)

    def can_send(self, now: float) -> bool:
        """Whether one more request may go out: ready, writable, not throttled, and the window is not full."""
        connection = self._connection
        return (
            connection is not None
            and self.state is _READY
            and connection.writable
            and len(connection.in_flight) < self.max_in_flight
            and self.throttled_until <= now
        )

    def writable(self) -> bool:
        """Whether the broker reads what it is sent; False without a connection."""
        return self._connection is not None and self._connection.writable

    def throttle(self, milliseconds: int) -> None:
        """The broker asks to be left alone for so long (KIP-219)."""
        if milliseconds > 0 and self.state is not LinkState.CLOSED:
            self.throttled_until = max(self.throttled_until, self._loop.time() + milliseconds / 1000)
            self._forget_throttle()
            self._unthrottle = self._loop.call_at(self.throttled_until, self._on_change, self)

    def _forget_throttle(self) -> None:
        if self._unthrottle is not None:
            self._unthrottle.cancel()
            self._unthrottle = None

    def version_for(self, request: type[Request], at_most: int | None = None) -> int:
        """The newest version both sides speak; UnsupportedVersionException if there is none."""
        newest = request.MAX_VERSION if at_most is None else min(at_most, request.MAX_VERSION)
        low, high = self.versions.get(request.API_KEY, (0, -1))
        chosen = min(newest, high)
        if chosen < max(low, request.MIN_VERSION):
            raise UnsupportedVersionException(
                f"{self} speaks {request.API_KEY.name} {low} to {high}, "
                f"and {request.MIN_VERSION} to {newest} would be needed"
                if high >= low
                else f"{self} does not speak {request.API_KEY.name}"
            )
        return chosen

    def newest(self, api_key: int) -> int:
        """The newest version of an API that the broker speaks; -1 if it does not."""
        return self.versions.get(api_key, (0, -1))[1]

    def send(self, request: Request, version: int, handler: Handler, *, expect_response: bool = True) -> None:
        """Sends on the connection there is; NetworkException if there is none."""
        if self._connection is None:
            raise NetworkException(f"not connected to {self}")
        self._connection.send(request, version, handler, expect_response=expect_response)

    async def call(self, request: Request, response_class: type[R], at_most: int | None = None) -> R:
        """Sends in the newest common version, or an older one, and waits for the answer."""
        if self._connection is None:
            raise NetworkException(f"not connected to {self}")
        return await self._connection.call(request, response_class, self.version_for(type(request), at_most))

    def disconnect(self, error: KafkaError) -> None:
        """Drops the connection there is; whoever wants one again asks again."""
        if self._connection is not None:
            self._connection.close(error)

    def rest(self) -> None:
        """Nobody needs this connection at present; that is no failure."""
        self._resting = True
        self.disconnect(NetworkException(f"{self} is not needed any more"))

    def retire(self, error: KafkaError) -> None:
        """For good: nothing new is sent, and the connection ends when what is under way was answered, or timed out.

        The connection task is not needed for that.
        """
        self.state = LinkState.CLOSED
        self._forget_throttle()
        if self._connection is not None:
            self._connection.close_when_answered(error)

    async def close(self, grace: float) -> None:
        """For good. What was written (acks=0) gets ``grace`` seconds to leave the socket."""
        self.state = LinkState.CLOSED
        self._forget_throttle()
        if self._connection is not None:
            await self._connection.close_gracefully(grace)

    def abort(self, error: KafkaError) -> None:
        """For good, and at once."""
        self.state = LinkState.CLOSED
        self._forget_throttle()
        self.disconnect(error)

    async def run(self) -> None:
        """The connection task."""
        while True:
            self._change(LinkState.IDLE)
            await self._wanted.wait()
            self._wanted.clear()
            self._change(LinkState.CONNECTING)
            try:
                await self._connect()
            except KafkaError as error:
                self._failed(error)
            else:
                await self._serve()
            config = self._config
            wait = backoff(
                self._failures,
                config.reconnect_backoff_ms / 1000,
                config.reconnect_backoff_max_ms / 1000,
                self._random,
            )
            self.backoff_until = self._loop.time() + wait
            self._change(LinkState.BACKOFF)
            await asyncio.sleep(wait)

    def _change(self, state: LinkState) -> None:
        if state is not self.state:
            self.changed_at = self._loop.time()
        self.state = state
        self._on_change(self)

    def _failed(self, error: KafkaError) -> None:
        self._failures += 1
        self.last_error = error
        if not self._reported:
            self._reported = True
            fields = self._fields("broker_unreachable", error)
            log.warning("%s cannot be reached: %s; trying again", self, error, extra={"kafka": fields})

    def _fields(self, event: str, error: KafkaError | None = None) -> dict[str, object]:
        """For machines that read the log (docs/services.md)."""
        fields: dict[str, object] = {"event": event, "node": self.node_id, "broker": str(self.address)}
        if error is not None:
            fields["error"] = type(error).__name__
        return fields

    async def _connect(self) -> None:
        """To the first of the host's addresses that can be had; NetworkException or TimeoutException if none can."""
        config = self._config
        longest = config.socket_connection_setup_timeout_max_ms / 1000
        allowed = min(config.socket_connection_setup_timeout_ms / 1000 * 2 ** min(self._failures, 20), longest)
        try:
            async with asyncio.timeout(allowed):
                hosts = in_turn(await resolve(self.address), self._last_host)
        except (OSError, ValueError) as error:
            raise self._explained(error, allowed) from error
        for host in hosts:
            try:
                return await self._connect_to(host, allowed)
            except (NetworkException, TimeoutException) as error:
                if host == hosts[-1]:
                    raise
                log.debug("%s at %s: %s; trying its next address", self, host, error)

    async def _connect_to(self, host: str, allowed: float) -> None:
        self._lost.clear()
        connection = self._new_connection()
        try:
            async with asyncio.timeout(allowed):
                transport, _ = await self._loop.create_connection(
                    lambda: ConnectionProtocol(connection), host, self.address.port
                )
                self._tune(transport.get_extra_info("socket"))
                await self._negotiate(connection)
            if connection.error is not None:  # lost in the very tick in which it became usable
                raise connection.error
        except (OSError, OverflowError, KafkaError, asyncio.CancelledError) as error:
            # Whatever was reached by then: nothing of it may stay open.
            reason = self._explained(error, allowed)
            connection.close(reason)
            if isinstance(error, KafkaError | asyncio.CancelledError):
                raise
            raise reason from error
        self._answers_to_connect = connection.answers
        self._last_host = host
        self._connection = connection

    def _explained(self, error: BaseException, allowed: float) -> KafkaError:
        if isinstance(error, KafkaError):
            return error
        if isinstance(error, TimeoutError):
            return TimeoutException(
                f"{self} was not ready within {allowed * 1000:.0f} ms (socket.connection.setup.timeout.ms): "
                "does a Kafka broker listen there, and without TLS?"
            )
        if isinstance(error, asyncio.CancelledError):
            return NetworkException(f"the client stopped while it connected to {self}")
        # Not only OSError: a host name may be none (UnicodeError), a port that a broker told us out of range.
        return NetworkException(f"cannot connect to {self}: {getattr(error, 'strerror', None) or error}")

    def _new_connection(self) -> Connection:
        return Connection(
            str(self),
            client_id=self._config.client_id,
            request_timeout=self._config.request_timeout_ms / 1000,
            # Beyond one request that waits for the socket, a slow broker gets nothing more into our memory.
            write_buffer=self._config.max_request_size,
            on_closed=self._connection_closed,
            on_writable=lambda: self._on_change(self),
            on_throttled=self.throttle,
            on_crash=self._on_crash,
            metrics=self._metrics.node(self.node_id),
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
        response = await connection.call(request, ApiVersionsResponse, newest)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            spoken = {api.api_key: api.max_version for api in response.api_keys}
            older = min(spoken.get(ApiKey.API_VERSIONS, 0), newest)
            response = await connection.call(request, ApiVersionsResponse, older)
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, f"{self} refused to tell its API versions")
        self.versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in response.finalized_features}

    def _connection_closed(self, connection: Connection, error: KafkaError) -> None:
        if self._connection is not connection:
            return  # it never came so far as to be used
        self._connection = None
        useful = connection.answers > self._answers_to_connect
        if useful:
            # It was of use, so this is a new trouble and not the old one going on.
            self._failures = 0
            self._reported = False
        if self.state is LinkState.CLOSED:
            pass
        elif self._resting or (useful and not connection.unsettled):
            # Nobody needed it just now, and brokers close idle connections, too. Should this one be gone for good, who
            # connects next will find out.
            self._failures = 1
        else:
            self._failed(error)
        if self.state is LinkState.READY:
            # Told at once, before the task runs: nobody shall send to a connection that is gone.
            self._change(LinkState.BACKOFF)
        self._lost.set()

    async def _serve(self) -> None:
        """READY until the connection is lost, or has been idle for connections.max.idle.ms."""
        connection = self._connection
        assert connection is not None
        self._resting = False
        if self._reported:
            log.info("%s is reached again", self, extra={"kafka": self._fields("broker_reached")})
        self.last_error = None
        self._change(LinkState.READY)
        idle = self._config.connections_max_idle_ms / 1000
        while not self._lost.is_set():
            if idle < 0:
                await self._lost.wait()
                break
            try:
                async with asyncio.timeout_at(connection.last_active + idle):
                    await self._lost.wait()
            except TimeoutError:
                quiet = self._loop.time() - connection.last_active
                if not connection.in_flight and quiet >= idle:
                    self._resting = True
                    connection.close(NetworkException(f"idle for connections.max.idle.ms={idle * 1000:.0f}"))
                elif connection.in_flight:
                    connection.last_active = self._loop.time()
