"""Counts the Produce requests of a connection, and the batches in them, from its bytes as they pass."""

from __future__ import annotations

import struct
from collections.abc import Generator
from dataclasses import dataclass

from aioproducer.protocol.api_key import ApiKey

FLEXIBLE, TOPIC_IDS = 9, 13
"""The Produce versions from which on sizes are varints, and topics are named by id."""


@dataclass
class Counts:
    """Produce requests, the batches in them, and the bytes of these; before that, ``uncounted`` bytes of batches."""

    requests: int = 0
    batches: int = 0
    batch_bytes: int = 0
    uncounted: int = 0

    def reset(self, uncounted: int = 0) -> None:
        self.requests = self.batches = self.batch_bytes = 0
        self.uncounted = uncounted

    def add(self, batches: list[int]) -> None:
        """One request with batches of these sizes."""
        if self.uncounted > 0:
            self.uncounted -= sum(batches)
            return
        self.requests += 1
        self.batches += len(batches)
        self.batch_bytes += sum(batches)


class ProduceMeter:
    """Adds one connection's requests to ``counts``. Records are skipped, not looked at: a meter must cost nothing."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        self._left = 0
        """Bytes of the present frame that have not been parsed."""
        self._held = bytearray()
        self._parsing = self._frames()
        self._wanted = next(self._parsing)

    def feed(self, data: memoryview) -> None:
        """Takes the next bytes, in whatever pieces they come."""
        place = 0
        while place < len(data):
            if self._wanted < 0:
                step = min(-self._wanted, len(data) - place)
                self._wanted += step
                if not self._wanted:
                    self._wanted = self._parsing.send(b"")
            else:
                step = min(self._wanted - len(self._held), len(data) - place)
                self._held += data[place : place + step]
                if len(self._held) == self._wanted:
                    found = bytes(self._held)
                    self._held.clear()
                    self._wanted = self._parsing.send(found)
            place += step

    # Each generator yields how many bytes it wants to be sent, or, below 0, how many to skip.

    def _frames(self) -> Generator[int, bytes, None]:
        while True:
            (self._left,) = struct.unpack(">i", (yield 4))
            key, version, _ = struct.unpack(">hhi", (yield from self._take(8)))
            if key == ApiKey.PRODUCE:
                self.counts.add((yield from self._produce(version)))
            yield from self._skip(self._left)

    def _produce(self, version: int) -> Generator[int, bytes, list[int]]:
        """The sizes of its batches."""
        sizes: list[int] = []
        flexible = version >= FLEXIBLE
        yield from self._skip((yield from self._short()))  # the client id
        if flexible:
            yield from self._tags()
        yield from self._skip((yield from (self._compact() if flexible else self._short())))  # the transactional id
        yield from self._skip(2 + 4)  # acks, timeout
        for _ in range((yield from self._size(flexible))):
            named = yield from self._name(version)
            yield from self._skip(named)
            for _ in range((yield from self._size(flexible))):
                yield from self._skip(4)  # the partition
                size = yield from self._size(flexible)
                sizes.append(size)
                yield from self._skip(size)
                if flexible:
                    yield from self._tags()
            if flexible:
                yield from self._tags()
        return sizes

    def _name(self, version: int) -> Generator[int, bytes, int]:
        """The size of what a topic is named by."""
        if version >= TOPIC_IDS:
            return 16
        return (yield from (self._compact() if version >= FLEXIBLE else self._short()))

    def _size(self, flexible: bool) -> Generator[int, bytes, int]:
        """Of an array or of records; 0 for null."""
        if flexible:
            return (yield from self._compact())
        return max(0, int.from_bytes((yield from self._take(4)), signed=True))

    def _short(self) -> Generator[int, bytes, int]:
        return max(0, int.from_bytes((yield from self._take(2)), signed=True))

    def _compact(self) -> Generator[int, bytes, int]:
        return max(0, (yield from self._uvarint()) - 1)

    def _tags(self) -> Generator[int, bytes, None]:
        for _ in range((yield from self._uvarint())):
            yield from self._uvarint()
            yield from self._skip((yield from self._uvarint()))

    def _uvarint(self) -> Generator[int, bytes, int]:
        value = shift = 0
        while True:
            byte = (yield from self._take(1))[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _take(self, size: int) -> Generator[int, bytes, bytes]:
        self._spend(size)
        return (yield size)

    def _skip(self, size: int) -> Generator[int, bytes, None]:
        self._spend(size)
        if size:
            yield -size

    def _spend(self, size: int) -> None:
        if size > self._left:
            raise ValueError(f"a frame ends {size - self._left} bytes too early")
        self._left -= size
