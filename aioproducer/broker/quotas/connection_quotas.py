"""Limits the connections of a node, and their rate: by address, by listener and in all.

This is Kafka's ``ConnectionQuotas`` as a rule of state and ``now``, without sockets or an event loop (those are in
``connection_gate.py``). Limits, rates and delays are Kafka's, but waiting differs. Kafka's acceptor stops while a
connection waits for its turn, so the client that connects most delays all others. Here

- the limits of the address come first; a connection beyond them counts neither for the listener nor for the node;
- connections that wait for the listener or the node wait in a room, where addresses take turns;
- the room is bounded; when it is full, the address with the most connections in it loses its newest one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.connection_overrides import connections_by_address
from aioproducer.broker.quotas.rate_quota import KAFKAS_WINDOW, QuotaWindow, RateQuota, RateQuotas
from aioproducer.configs.config_def import INT_MAX
from aioproducer.metrics.sensor import Sensor

ROOM = 1000
"""How many connections of a listener may wait."""

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """``listener.name.<name>.max.connections`` and ``.max.connection.creation.rate``."""

    max_connections: int = INT_MAX
    max_connection_creation_rate: int = INT_MAX

    @staticmethod
    def of(config: BrokerConfig, listener: str) -> ListenerLimits:
        connections = config.of_listener(listener, "max.connections")
        rate = config.of_listener(listener, "max.connection.creation.rate")
        return ListenerLimits(INT_MAX if connections is None else connections, INT_MAX if rate is None else rate)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The configs with these names; all of them may change while the node runs."""

    max_connections: int = INT_MAX
    max_connection_creation_rate: int = INT_MAX
    max_connections_per_ip: int = INT_MAX
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    listeners: Mapping[str, ListenerLimits] = field(default_factory=dict)

    @staticmethod
    def of(config: BrokerConfig, addresses: Mapping[str, Collection[str]]) -> ConnectionLimits:
        """``addresses`` has the addresses of the host names in ``max.connections.per.ip.overrides``."""
        return ConnectionLimits(
            config.max_connections,
            config.max_connection_creation_rate,
            config.max_connections_per_ip,
            connections_by_address(config.max_connections_per_ip_overrides, addresses),
            {name: ListenerLimits.of(config, name) for name in config.listening.names},
        )

    def of_address(self, address: str) -> int:
        return self.max_connections_per_ip_overrides.get(address, self.max_connections_per_ip)


class Verdict(Enum):
    """What happens to a connection."""

    ADMITTED = "admitted"
    TOO_MANY = "its address has reached its limit of connections"
    """Kafka's ``TooManyConnectionsException``: closed at once."""
    THROTTLED = "its address connects too often"
    """Kafka's ``ConnectionThrottledException``: kept unread and closed after the delay, so that the client does not
    reconnect at once."""
    TURNED_AWAY = "too many connections wait"


class Decision(NamedTuple, Generic[C]):
    """The verdict on a connection; each connection gets one."""

    listener: str
    address: str
    connection: C
    verdict: Verdict
    delay_ms: int = 0
    """The delay of a THROTTLED connection."""


class _Turn(NamedTuple, Generic[C]):
    address: str
    connection: C
    until: float


class _Listener(Generic[C]):
    """One listener: the number of its connections, those that wait, and the one whose turn it is."""

    def __init__(self, name: str, limits: ListenerLimits, window: QuotaWindow) -> None:
        self.name = name
        self.limits = limits
        self.count = 0
        self.rate = RateQuota(limits.max_connection_creation_rate, window)
        self.ip_throttle_times = Sensor(window.seconds, window.samples)
        self.room: dict[str, deque[C]] = {}
        """Waiting connections by address; the first address is next."""
        self.waiting = 0
        self.turn: _Turn[C] | None = None

    def put(self, address: str, connection: C) -> None:
        self.room.setdefault(address, deque()).append(connection)
        self.waiting += 1

    def take(self) -> tuple[str, C]:
        """The oldest connection of the address whose turn it is."""
        address, queue = next(iter(self.room.items()))
        del self.room[address]
        connection = queue.popleft()
        if queue:
            self.room[address] = queue
        self.waiting -= 1
        return address, connection

    def turn_away(self, newcomer: str) -> tuple[str, C]:
        """Removes the newest connection of the address that has most in the room; on a tie, prefers ``newcomer``."""
        address = max(self.room, key=lambda address: (len(self.room[address]), address == newcomer))
        connection = self.room[address].pop()
        if not self.room[address]:
            del self.room[address]
        self.waiting -= 1
        return address, connection


class ConnectionQuotas(Generic[C]):
    """The connections of one node. ``protected`` is the inter-broker listener, which max.connections does not limit."""

    def __init__(
        self, limits: ConnectionLimits, window: QuotaWindow = KAFKAS_WINDOW, *, protected: str | None = None
    ) -> None:
        self._limits = limits
        self._window = window
        self._protected = protected
        self._listeners: dict[str, _Listener[C]] = {}
        self._by_address: dict[str, int] = {}
        self._total = 0
        self._rate = RateQuota(limits.max_connection_creation_rate, window)
        self._ip_rate_default = INT_MAX
        self._ip_rate_limits: Mapping[str, int] = {}
        self._ip_rates = RateQuotas[str](window)

    # limits

    def add_listener(self, name: str) -> None:
        self._listeners[name] = _Listener(name, self._limits.listeners.get(name, ListenerLimits()), self._window)

    def remove_listener(self, name: str) -> None:
        """Removes a closed listener, which has neither open nor waiting connections."""
        del self._listeners[name]

    def configure(self, limits: ConnectionLimits) -> None:
        """Sets new limits. A turn that has begun keeps its delay, as in Kafka."""
        self._limits = limits
        self._rate.bound = limits.max_connection_creation_rate
        for listener in self._listeners.values():
            listener.limits = limits.listeners.get(listener.name, ListenerLimits())
            listener.rate.bound = listener.limits.max_connection_creation_rate

    def configure_ip_rates(self, default: int, by_address: Mapping[str, int]) -> None:
        """Sets how many connections a second an address may make: the quota of the entity ``ip`` (KIP-612)."""
        self._ip_rate_default, self._ip_rate_limits = default, by_address

    def ip_rate_limit(self, address: str) -> int:
        return self._ip_rate_limits.get(address, self._ip_rate_default)

    # connections

    def arrive(self, listener_name: str, address: str, connection: C, now: float) -> list[Decision[C]]:
        """A connection was accepted. Returns the decisions that this causes, about it and others; without one it
        waits for :meth:`turn`."""
        listener = self._listeners[listener_name]
        delay_ms = self._throttled_ip(address, now)
        if delay_ms > 0:
            listener.ip_throttle_times.record(delay_ms, now)
            return [Decision(listener_name, address, connection, Verdict.THROTTLED, delay_ms)]
        if self.count(address) >= self._limits.of_address(address):
            return [Decision(listener_name, address, connection, Verdict.TOO_MANY)]
        listener.put(address, connection)
        decisions = self.turn(now)
        if listener.waiting > ROOM:
            decisions.append(Decision(listener_name, *listener.turn_away(address), Verdict.TURNED_AWAY))
        return decisions

    def depart(self, listener_name: str, address: str) -> None:
        """An admitted connection was closed. :meth:`turn` gives its place to another one."""
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]
        self._listeners[listener_name].count -= 1
        self._total -= 1

    def turn(self, now: float) -> list[Decision[C]]:
        """The decisions about connections whose wait is over. The caller calls it after :meth:`depart`, after limits
        have changed, and at :meth:`next_turn`."""
        decisions: list[Decision[C]] = []
        more = True
        while more:
            more = False
            for listener in tuple(self._listeners.values()):
                decision = self._next(listener, now)
                if decision is not None:
                    decisions.append(decision)
                    # The listener that got a place moves to the end, so that listeners take turns.
                    self._listeners[listener.name] = self._listeners.pop(listener.name)
                    more = True
        return decisions

    def next_turn(self, now: float) -> float | None:
        """When the next delay ends; None if connections wait only for others to close."""
        delays = [
            listener.turn.until
            for listener in self._listeners.values()
            if listener.turn is not None and listener.turn.until > now
        ]
        return min(delays, default=None)

    def leave_room(self, name: str | None = None) -> list[Decision[C]]:
        """Refuses all connections that wait for this listener, or for any listener, because it closes."""
        decisions = []
        for listener in self._listeners.values() if name is None else [self._listeners[name]]:
            if listener.turn is not None:
                decisions.append(
                    Decision(listener.name, listener.turn.address, listener.turn.connection, Verdict.TURNED_AWAY)
                )
                listener.turn = None
            while listener.waiting:
                decisions.append(Decision(listener.name, *listener.take(), Verdict.TURNED_AWAY))
        return decisions

    # figures

    @property
    def total(self) -> int:
        return self._total

    def count(self, address: str) -> int:
        """Connections from an address."""
        return self._by_address.get(address, 0)

    def listener_count(self, name: str) -> int:
        return self._listeners[name].count

    def waiting(self, name: str) -> int:
        """Connections of a listener that were accepted and wait for their turn."""
        listener = self._listeners[name]
        return listener.waiting + (listener.turn is not None)

    @property
    def excess(self) -> int:
        """How many connections exceed max.connections. As many of the unprotected listeners must be closed."""
        return max(self._total - self._limits.max_connections, 0)

    @property
    def protected(self) -> str | None:
        """The inter-broker listener, if there are others."""
        return self._protected if len(self._listeners) > 1 else None

    @property
    def listeners(self) -> list[str]:
        return list(self._listeners)

    def accept_rate(self, now: float, listener: str | None = None) -> float:
        """Connections a second, of a listener or of all."""
        return (self._rate if listener is None else self._listeners[listener].rate).rate(now)

    def ip_accept_rates(self, now: float) -> dict[str, float]:
        """Connections a second of each address that has a quota for them."""
        return {address: rate.rate(now) for address, rate in self._ip_rates}

    def throttle_times(self, name: str, now: float) -> tuple[float, float]:
        """The average delay in milliseconds of a listener's connections, and of those of throttled addresses."""
        listener = self._listeners[name]
        return listener.rate.throttle_times.average(now), listener.ip_throttle_times.average(now)

    # rules

    def _next(self, listener: _Listener[C], now: float) -> Decision[C] | None:
        if listener.turn is None:
            if not listener.waiting:
                return None
            delay_ms = self._delay_ms(listener, now)
            listener.turn = _Turn(*listener.take(), now + delay_ms / 1000)
        if now < listener.turn.until or not self._has_place(listener):
            return None
        address, connection, _ = listener.turn
        listener.turn = None
        if self.count(address) >= self._limits.of_address(address):
            return Decision(listener.name, address, connection, Verdict.TOO_MANY)
        self._by_address[address] = self.count(address) + 1
        listener.count += 1
        self._total += 1
        return Decision(listener.name, address, connection, Verdict.ADMITTED)

    def _has_place(self, listener: _Listener[C]) -> bool:
        if listener.count >= listener.limits.max_connections:
            return False
        return listener.name == self.protected or self._total < self._limits.max_connections

    def _delay_ms(self, listener: _Listener[C], now: float) -> int:
        rates = [listener.rate] if listener.name == self.protected else [listener.rate, self._rate]
        for rate in rates:
            rate.record(1, now)
        delay_ms = min(max(rate.throttle_ms(now) for rate in rates), self._window.milliseconds)
        if delay_ms > 0:
            listener.rate.throttle_times.record(delay_ms, now)
        return delay_ms

    def _throttled_ip(self, address: str, now: float) -> int:
        limit = self.ip_rate_limit(address)
        if limit == INT_MAX:
            return 0
        rate = self._ip_rates.get(address, limit, now)
        rate.record(1, now)
        delay_ms = min(rate.throttle_ms(now), self._window.milliseconds)
        if delay_ms > 0:
            rate.record(-1, now)
        return delay_ms
