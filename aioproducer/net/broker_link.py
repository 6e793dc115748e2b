"""One broker: its API versions, and whether it can be sent to."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeVar, final

from aioproducer.errors import KafkaError, NetworkException
from aioproducer.net.addresses import Address
from aioproducer.net.connection.connection import Connection
from aioproducer.net.connection.in_flight_request import InFlightRequest
from aioproducer.net.connection.node_api_versions import NodeApiVersions
from aioproducer.protocol.schema import Request, Response
from aioproducer.timing.loop_clock import LoopClock

R = TypeVar("R", bound=Response)


class LinkState(Enum):
    """IDLE → CONNECTING → READY → BACKOFF → IDLE; CONNECTING → BACKOFF; any → CLOSED."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    BACKOFF = "backoff"
    CLOSED = "closed"


_READY: Final = LinkState.READY  # read several times a request: looking an enum member up is slow


@final
class BrokerLink:
    """A broker as its users see it. Its task makes and watches the connection (``link_task.py``).

    ``on_change(link)`` is called at each change of its state.
    """

    def __init__(
        self, node_id: int, address: Address, max_in_flight: int, *, on_change: Callable[[BrokerLink], None]
    ) -> None:
        self.node_id = node_id
        self.address = address
        self.max_in_flight = max_in_flight
        self.state = LinkState.IDLE
        self.changed_at = -math.inf
        """When it entered its present state."""
        self.wanted = asyncio.Event()
        """A caller wants a connection."""
        self.connection: Connection | None = None
        """The present connection, while it is usable."""
        self.reauthenticating = False
        """The client re-authenticates: nothing else may be sent until it has finished."""
        self.resting = False
        """The connection ends, or has ended, because it was idle."""
        self.api_versions = NodeApiVersions(str(self))
        """The broker's answer at the last connection."""
        self.greeting = 0.0
        """The seconds that the first answer of the last connection took."""
        self.throttled_until = 0.0
        self.failures = 0
        """Attempts to connect that failed in a row."""
        self.unreached = False
        """The last attempt to connect failed."""
        self.last_error: KafkaError | None = None
        self.backoff_until = -math.inf
        self._on_change = on_change
        self._unthrottle: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._clock = LoopClock(self._loop)

    def __str__(self) -> str:
        return f"{self.address}" + (f" (node {self.node_id})" if self.node_id >= 0 else "")

    def want(self) -> None:
        """Connects, unless that is under way."""
        if self.state is LinkState.IDLE:
            self.wanted.set()

    def ready(self) -> bool:
        return self.state is _READY and not self.reauthenticating

    def load(self) -> tuple[bool, int]:
        """Lowest for the link that answers soonest; a throttled link comes after all others."""
        return self.throttled_until > self._loop.time(), self.in_flight()

    def in_flight(self) -> int:
        return 0 if self.connection is None else len(self.connection.in_flight)

    def unanswered_since(self) -> float:
        """When the oldest request without an answer was sent; NaN if there is none."""
        return math.nan if self.connection is None else self.connection.unanswered_since()

    def can_send(self, now: float) -> bool:
        """Whether one more request may go out: ready, writable, not throttled, and the window is not full."""
        connection = self.connection
        return (
            connection is not None
            and self.state is _READY
            and not self.reauthenticating
            and connection.writable
            and len(connection.in_flight) < self.max_in_flight
            and self.throttled_until <= now
        )

    def writable(self) -> bool:
        """Whether the broker reads what is sent to it; False without a connection."""
        return self.connection is not None and self.connection.writable

    def throttle(self, milliseconds: int) -> None:
        """The broker throttles the client for this long (KIP-219)."""
        if milliseconds > 0 and self.state is not LinkState.CLOSED:
            until = self._clock.tick(self._loop.time() + milliseconds / 1000)
            self.throttled_until = max(self.throttled_until, until)
            self._forget_throttle()
            self._unthrottle = self._loop.call_at(self.throttled_until, self._throttled_enough)

    def _throttled_enough(self) -> None:
        self._unthrottle = None
        self.changed()

    def _forget_throttle(self) -> None:
        if self._unthrottle is not None:
            self._unthrottle.cancel()
            self._unthrottle = None

    def send(self, request: InFlightRequest, *, expect_response: bool = True) -> None:
        """Sends on the present connection; NetworkException if there is none."""
        if self.connection is None:
            raise NetworkException(f"not connected to {self}")
        self.connection.send(request, expect_response=expect_response)

    def call(self, request: Request, response_class: type[R], at_most: int | None = None) -> asyncio.Future[R]:
        """Sends in the newest common version, or an older one; the future is the answer, or what ended the request."""
        if self.connection is None:
            raise NetworkException(f"not connected to {self}")
        return self.connection.call(
            request, response_class, self.api_versions.latest_usable_version(type(request), at_most)
        )

    def disconnect(self, error: KafkaError) -> None:
        """Drops the present connection, if any; the next request makes a new one."""
        if self.connection is not None:
            self.connection.close(error)

    def rest(self) -> None:
        """Closes a connection that nothing needs at present; this is no failure."""
        self.resting = True
        self.disconnect(NetworkException(f"{self} is not needed any more"))

    def retire(self, error: KafkaError) -> None:
        """Closes for good: sends nothing new, and ends the connection once all requests were answered or timed out.

        The connection task is not needed for that.
        """
        self.end()
        if self.connection is not None:
            self.connection.close_when_answered(error)

    def abort(self, error: KafkaError) -> None:
        """Closes for good, at once."""
        self.end()
        self.disconnect(error)

    def end(self) -> None:
        """Marks the link closed for good: it sends nothing new."""
        self.state = LinkState.CLOSED
        self._forget_throttle()

    def change(self, state: LinkState) -> None:
        """Called by the link's task at each change of state."""
        if state is not self.state:
            self.changed_at = self._loop.time()
        self.state = state
        self.changed()

    def changed(self) -> None:
        """Reports a possible change."""
        self._on_change(self)
