"""What clients have pushed, for tests and programs. No client can fill it, or drive out what others have pushed."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple
from uuid import UUID

MAX_PUSHES = 100
"""Pushes that are kept of the clients of a user at an address, the newest ones."""

MAX_BYTES = 8 * 1024 * 1024
"""Bytes of these."""

MAX_ALL_BYTES = 64 * 1024 * 1024
"""Bytes of all pushes. Beyond them, the oldest push of the holder with the most bytes is removed."""

MAX_AGE = 3600.0
"""Seconds that a push is kept."""

_OVERHEAD = 1024
"""Bytes that a push takes beside its metrics, at most."""


class ClientPush(NamedTuple):
    """One push of a client, of at least one metric."""

    node_id: int
    """The node that received it."""
    time_ms: int
    """When, in milliseconds since the epoch."""
    client_instance_id: UUID
    client_id: str
    software: str
    """The client's software and version, ``aioproducer 1.0``; empty if it has not described itself."""
    user: str
    address: str
    is_terminating: bool
    """Whether it was the last one of this client."""
    codec: str
    """What it was compressed with: ``zstd``, or ``none``."""
    metrics: bytes
    """OpenTelemetry's ``MetricsData``, not compressed, as the client made it: nothing has checked it."""

    def metrics_data(self) -> Any:
        """The metrics as a ``MetricsData`` message of ``opentelemetry-proto``.

        Raises ImportError if that is not installed (``pip install 'aioproducer[telemetry]'``), and protobuf's
        ``DecodeError`` if they are none.
        """
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

        return MetricsData.FromString(self.metrics)


_Holder = tuple[str, str]


class ReceivedTelemetry:
    """Pushes of all nodes. ``now`` is in seconds."""

    def __init__(self) -> None:
        self._pushes: dict[_Holder, deque[tuple[float, ClientPush]]] = {}
        self._sizes: dict[_Holder, int] = {}

    def add(self, push: ClientPush, now: float) -> None:
        """Keeps a push, in the place of older ones if there is no room."""
        self._expire(now)
        holder = push.user, push.address
        own = self._pushes.setdefault(holder, deque())
        own.append((now, push))
        self._sizes[holder] = self._sizes.get(holder, 0) + _size(push)
        while len(own) > MAX_PUSHES or (self._sizes[holder] > MAX_BYTES and len(own) > 1):
            self._drop(holder)
        while sum(self._sizes.values()) > MAX_ALL_BYTES:
            self._drop(max(self._sizes, key=self._sizes.__getitem__))

    def all(self, now: float) -> list[ClientPush]:
        """Those that are kept, in the order in which they came."""
        self._expire(now)
        pushes = [entry for own in self._pushes.values() for entry in own]
        return [push for _, push in sorted(pushes, key=lambda entry: entry[0])]

    def _expire(self, now: float) -> None:
        for holder in list(self._pushes):
            while holder in self._pushes and now - self._pushes[holder][0][0] > MAX_AGE:
                self._drop(holder)

    def _drop(self, holder: _Holder) -> None:
        """Drops the oldest push of a holder, who is forgotten with the last one."""
        own = self._pushes[holder]
        _, push = own.popleft()
        self._sizes[holder] -= _size(push)
        if not own:
            del self._pushes[holder], self._sizes[holder]


def _size(push: ClientPush) -> int:
    return len(push.metrics) + _OVERHEAD
