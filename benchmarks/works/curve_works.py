"""The variable of each curve, and the works that are its points."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.works.works import MOST_PARTITIONS, STREAM, TASKS, Work

LARGEST = 950_000
"""Bytes of a record: librdkafka and franz-go refuse one of 1,000,000 by default."""
MOST_RECORDS, MOST_BYTES, FEWEST_RECORDS = 500_000, 200_000_000, 200


@dataclass(frozen=True)
class Axis:
    """Points are (where, the work there), in order; ``where`` is a number or, if they have none, a name."""

    name: str
    title: str
    points: tuple[tuple[int | str, Work], ...]


def _stream(axis: str, point: int | str, size: int, records: int = MOST_RECORDS, **more: int | str) -> Work:
    return Work(f"{axis}={point}", f"{axis} {point}", STREAM, size, records, **more)  # type: ignore[arg-type]


def _records(size: int) -> int:
    return max(FEWEST_RECORDS, min(MOST_RECORDS, MOST_BYTES // size))


_AXES = (
    Axis(
        "record-size",
        "record size in bytes",
        tuple(
            (size, _stream("record-size", size, size, _records(size)))
            for size in (10, 100, 1_000, 10_000, 100_000, LARGEST)
        ),
    ),
    Axis(
        "senders",
        "tasks that each await every record of 100 B, linger 0",
        tuple(
            (
                count,
                Work(
                    f"senders={count}",
                    f"senders {count}",
                    TASKS,
                    100,
                    min(200_000, 4_000 * count),
                    linger_ms=0,
                    tasks=count,
                ),
            )
            for count in (1, 10, 100, 1_000, 10_000)
        ),
    ),
    Axis(
        "compression",
        "codec, lines of CSV",
        tuple(
            (codec, _stream("compression", codec, 0, compression=codec))
            for codec in ("none", "gzip", "snappy", "lz4", "zstd")
        ),
    ),
    # The last ones: a broker continues to delete many partitions for a while.
    Axis(
        "topics",
        "topics of one partition, records of 100 B, ten to each in turn",
        tuple((count, _stream("topics", count, 100, topics=count, partitions=1)) for count in (1, 10, 100, 1_000)),
    ),
    Axis(
        "partitions",
        "partitions of the topic, records of 100 B without a key",
        tuple(
            (count, _stream("partitions", count, 100, partitions=count))
            for count in (1, 10, 100, 1_000, MOST_PARTITIONS)
        ),
    ),
)
AXES: dict[str, Axis] = {axis.name: axis for axis in _AXES}
CURVE_WORKS: dict[str, Work] = {work.name: work for axis in _AXES for _, work in axis.points}
