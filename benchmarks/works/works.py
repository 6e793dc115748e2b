"""The works that clients are given. A work is data; its records are handed over in one of three ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_PARTITIONS = 9_998
"""A controller writes no more than 10,000 records for one request: the topic is one, and its config another."""
QUICK = 10
"""A quick run has the records of a full one divided by this."""
QUICK_WORKS = ("stream-100", "stream-1000", "zstd", "tasks-100", "single", "paced")

STREAM = "stream"
"""One caller, as fast as records are taken; every outcome is looked at, where the client's name does not say else."""
TASKS = "tasks"
"""Tasks that each await every record before the next, as request handlers of a service do."""
PACED = "paced"
"""One caller, at half of the speed that confluent-kafka reached in ``stream-100``."""


@dataclass(frozen=True)
class Work:
    """``record_size`` is in bytes, 0 for the lines of the flights; ``records`` is what a run of the fastest has."""

    name: str
    title: str
    way: str
    record_size: int
    records: int
    linger_ms: int = 5
    batch_size: int = 0
    compression: str = "none"
    keyed: bool = False
    """Each record has one of a thousand keys, and two headers."""
    keys: int = 0
    """So many keys instead, in turn, and no headers: they spread the records over all partitions."""
    tasks: int = 0
    partitions: int = 6
    """Of each topic."""
    topics: int = 1
    round_trip_ms: int = 0
    """Of the line to the broker; 0 for none."""
    clients: Sequence[str] = ()
    """Only these take part; without any, all that can."""

    def records_of(self, share: int, *, quick: bool) -> int:
        """How many records a client has that is given one in ``share``."""
        return max(1, self.records // share // (QUICK if quick else 1))


_KIB_64 = 64 * 1024
_FASTEST = ("aioproducer", "aioproducer-unread", "aioproducer-many", "aioproducer-table", "confluent-kafka", "franz-go")
"""To whom a larger batch is a gain."""
_LARGE = ("aioproducer", "aioproducer-unread", "confluent-kafka", "franz-go")
_PYTHON = ("aioproducer", "aioproducer-unread", "confluent-kafka")

_WORKS = (
    Work("stream-100", "100 B, an awaitable or callback for each record", STREAM, 100, 2_000_000),
    Work("stream-1000", "1,000 B, an awaitable or callback for each record", STREAM, 1000, 400_000),
    Work("stream-100-64k", "100 B, batches of 64 KiB", STREAM, 100, 2_000_000, batch_size=_KIB_64, clients=_FASTEST),
    Work("stream-1000-64k", "1,000 B, batches of 64 KiB", STREAM, 1000, 400_000, batch_size=_KIB_64, clients=_FASTEST),
    Work("keyed", "100 B, a key of 16 B and two headers", STREAM, 100, 1_000_000, keyed=True),
    Work("stream-10000", "10,000 B, an awaitable or callback for each record", STREAM, 10_000, 60_000, clients=_LARGE),
    Work(
        "stream-100000", "100,000 B, an awaitable or callback for each record", STREAM, 100_000, 6_000, clients=_LARGE
    ),
    *(
        Work(
            f"partitions-{name}",
            f"100 B, {4 * count:,} keys in turn, which are of {count:,} partitions",
            STREAM,
            100,
            1_000_000,
            keys=4 * count,
            partitions=count,
            clients=_PYTHON,
        )
        for name, count in ((4_000, 4_000), (10_000, MOST_PARTITIONS))
    ),
    Work("lz4", "flights, a line of CSV each, lz4", STREAM, 0, 1_000_000, compression="lz4"),
    Work("zstd", "flights, a line of CSV each, zstd", STREAM, 0, 1_000_000, compression="zstd"),
    Work("tasks-100", "100 B, 1,000 tasks, each awaiting every record", TASKS, 100, 600_000, tasks=1000),
    Work("tasks-1000", "1,000 B, 1,000 tasks, each awaiting every record", TASKS, 1000, 200_000, tasks=1000),
    Work("single", "200 B, one record at a time, linger 0", TASKS, 200, 10_000, linger_ms=0, tasks=1),
    Work(
        "hundred",
        "200 B, 100 tasks, each awaiting every record, linger 0",
        TASKS,
        200,
        200_000,
        linger_ms=0,
        tasks=100,
    ),
    Work("paced", "100 B, at half of confluent-kafka's speed", PACED, 100, 1_000_000),
)
WORKS: dict[str, Work] = {work.name: work for work in _WORKS}
