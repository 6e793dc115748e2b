"""What clients have pushed, for tests and programs. No client can fill it, or drive out what others have pushed."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple
from uuid import UUID

MAX_PUSHES = 100
"""Pushes that are kept of the clients of a user at an address, the newest ones."""

MAX_BYTES = 8 * 1024 * 1024
"""Bytes of these."""

MAX_ALL_BYTES = 64 * 1024 * 1024
"""Bytes of all pushes. Beyond them, a holder with the most bytes, within an eighth, loses its oldest pushes."""

MAX_AGE = 3600.0
"""Seconds that a push is kept."""

_OVERHEAD = 1024
"""Bytes that a push takes beside its metrics and texts, and its holder, if this is the only one."""

_CHARACTER = 4
"""Bytes of a character, at most."""


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


_Name = tuple[str, str]


class _Holder:
    """A user at an address, and the numbers of its pushes, the oldest first."""

    __slots__ = ("name", "pushes", "size")

    def __init__(self, name: _Name) -> None:
        self.name = name
        self.pushes: list[int] = []
        self.size = 0
        """Bytes of all of them."""


class ReceivedTelemetry:
    """Pushes of all nodes. ``now`` is in seconds, and never decreases.

    A push costs the same however many holders there are, and drops some 300 others at most: it is bounded by the pushes
    that a holder may have.
    """

    def __init__(self) -> None:
        self._pushes: OrderedDict[int, tuple[float, _Holder, ClientPush]] = OrderedDict()
        """By number, the oldest first."""
        self._count = 0
        self._size = 0
        self._holders: dict[_Name, _Holder] = {}
        self._by_size: dict[int, OrderedDict[_Holder, None]] = {}
        """Holders of about the same size, by :func:`_magnitude`."""

    def add(self, push: ClientPush, now: float) -> None:
        """Keeps a push, in the place of older ones if there is no room."""
        self._expire(now, MAX_PUSHES)
        name = push.user, push.address
        holder = self._holders.get(name)
        if holder is None:
            holder = self._holders[name] = _Holder(name)
        self._count += 1
        self._pushes[self._count] = now, holder, push
        holder.pushes.append(self._count)
        self._resize(holder, _size(push))
        while len(holder.pushes) > MAX_PUSHES or (holder.size > MAX_BYTES and len(holder.pushes) > 1):
            self._drop(holder)
        while self._size > MAX_ALL_BYTES:
            # All that it has is about as large as this push, or larger. So one or two holders make room.
            largest = next(iter(self._by_size[max(self._by_size)]))
            while self._size > MAX_ALL_BYTES and largest.pushes:
                self._drop(largest)

    def all(self, now: float) -> list[ClientPush]:
        """Those that are kept, in the order in which they came."""
        self._expire(now, len(self._pushes))
        return [push for _, _, push in self._pushes.values()]

    def _expire(self, now: float, most: int) -> None:
        """Drops what is too old: so many pushes at most."""
        for _ in range(most):
            if not self._pushes:
                break
            came, holder, _push = self._pushes[next(iter(self._pushes))]
            if now - came <= MAX_AGE:
                break
            self._drop(holder)

    def _drop(self, holder: _Holder) -> None:
        """Drops the oldest push of a holder, who is forgotten with the last one."""
        _, _, push = self._pushes.pop(holder.pushes.pop(0))
        self._resize(holder, -_size(push))
        if not holder.pushes:
            del self._holders[holder.name]

    def _resize(self, holder: _Holder, by: int) -> None:
        before, after = _magnitude(holder.size), _magnitude(holder.size + by)
        self._size += by
        holder.size += by
        if before == after:
            return
        if before:
            self._by_size[before].pop(holder)
            if not self._by_size[before]:
                del self._by_size[before]
        if after:
            self._by_size.setdefault(after, OrderedDict())[holder] = None


def _size(push: ClientPush) -> int:
    return len(push.metrics) + _CHARACTER * (len(push.client_id) + len(push.software)) + _OVERHEAD


def _magnitude(size: int) -> int:
    """The first four binary digits of a size, and how many follow: it rises with the size, in steps of an eighth."""
    follow = max(size.bit_length() - 4, 0)
    return 8 * follow + (size >> follow)
