"""The works of ``lines``: a stream of 1,000 B over lines of some lengths, to one partition and to six."""

from __future__ import annotations

from benchmarks.works.works import STREAM, Work

ROUND_TRIPS_MS = (1, 5, 20, 50, 100, 150)
PARTITIONS = (1, 6)
RECORD_SIZE = 1000
"""So that a thousand records are a megabyte."""

MOST_RECORDS_PER_S = 200_000
SECONDS, ROUND_TRIPS = 0.8, 15
"""A run lasts about so long, or so many round trips if these are longer."""

_MB = 1_000_000
UNDER_WAY = {
    "aioproducer": (5 * 2**18, 5 * 2**20),
    "aioproducer-window-20": (20 * 2**18, 20 * 2**20),
    "confluent-kafka": (1 * _MB, 3 * _MB),  # idempotent, it has one request of a partition under way
    "franz-go": (5 * _MB, 10 * _MB),
    "java": (5 * 2**14, 6 * 5 * 2**14),
}
"""Bytes that a client's defaults allow to be under way to one partition, and to six. Only the length of its runs
depends on it: of a client that sends more, they are shorter."""

LINE_CLIENTS = tuple(UNDER_WAY)


def _work(partitions: int, round_trip_ms: int) -> Work:
    name = f"line-{partitions}-{round_trip_ms}ms"
    title = f"1,000 B, {partitions} partition{'s' if partitions > 1 else ''}, {round_trip_ms} ms"
    most = max(records_over(round_trip_ms, partitions, client) for client in LINE_CLIENTS)
    return Work(
        *(name, title, STREAM, RECORD_SIZE, most),
        partitions=partitions,
        round_trip_ms=round_trip_ms,
        clients=LINE_CLIENTS,
    )


def records_over(round_trip_ms: int, partitions: int, client: str) -> int:
    """How many records a client sends over such a line."""
    under_way = UNDER_WAY[client][partitions > 1]
    per_s = min(MOST_RECORDS_PER_S, under_way / RECORD_SIZE / round_trip_ms * 1000)
    return int(per_s * max(SECONDS, ROUND_TRIPS * round_trip_ms / 1000))


LINE_WORKS: dict[str, Work] = {
    work.name: work for work in (_work(partitions, far) for partitions in PARTITIONS for far in ROUND_TRIPS_MS)
}
