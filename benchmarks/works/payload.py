"""The records' values: a file with a line for each, read by every client, whatever its language."""

from __future__ import annotations

import itertools
import lzma
import secrets
from collections.abc import Iterator
from pathlib import Path

YEAR_OF_FLIGHTS = Path(__file__).parents[2] / "examples" / "flights.csv.xz"
FLIGHTS = 100_000
KEYS = 1_000
TURN = 10
"""Records that a topic gets before the next has its turn."""
HEADERS = [("trace-id", b"4bf92f3577b34da6a3ce929d0e0e4736"), ("source", b"benchmarks")]


def write_payload(path: Path, record_size: int) -> None:
    """One value of ``record_size`` random characters; with 0, as many flights from New York, as lines of CSV."""
    if record_size:
        path.write_text(secrets.token_hex((record_size + 1) // 2)[:record_size], encoding="ascii")
        return
    with lzma.open(YEAR_OF_FLIGHTS) as flights:
        path.write_bytes(b"".join(itertools.islice(flights, 1, FLIGHTS + 1)).rstrip(b"\n"))


class Payload:
    """The values of such a file; with ``keyed``, a key of 16 B for each and the same headers for all; with ``keys``,
    one of so many keys for each."""

    def __init__(self, path: Path, topics: list[str], *, keyed: bool, keys: int = 0) -> None:
        self.values = path.read_bytes().split(b"\n")
        self.keys: list[bytes] = [b"key-%012d" % number for number in range(keys or (KEYS if keyed else 0))]
        self.headers = HEADERS if keyed else None
        self._topics = topics

    def records(self, count: int) -> Iterator[tuple[str, bytes | None, bytes]]:
        """So many (topic, key, value), each taken in turn, topics for TURN records."""
        keys = itertools.cycle(self.keys) if self.keys else itertools.repeat(None)
        values = self.values
        return zip(self._places(), keys, itertools.islice(itertools.cycle(values), count), strict=False)

    def chunks(self, count: int, size: int) -> Iterator[Iterator[tuple[str, bytes | None, bytes]]]:
        """The same, ``size`` at a time; each chunk is to be taken before the next."""
        given = self.records(count)
        for _ in range(0, count, size):
            yield itertools.islice(given, size)

    def _places(self) -> Iterator[str]:
        if len(self._topics) == 1:
            return itertools.repeat(self._topics[0])
        return (topic for topic in itertools.cycle(self._topics) for _ in range(TURN))
