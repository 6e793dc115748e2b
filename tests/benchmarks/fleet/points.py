"""Points whose figures are made up."""

from __future__ import annotations

from typing import Any

from benchmarks.fleet.events import EVENTS
from benchmarks.fleet.point import START, Happening, Point, Size


def happening(event: str, **given: Any) -> Happening:
    figures: dict[str, Any] = {
        "seconds": 10.0,
        "records": 1000,
        "failed": 0,
        "cpu": 0.1,
        "collector": 0.01,
        "longest_collection": 2.0,
        "turn_p99_9": 0.5,
        "turn_max": 1.5,
        "longest": "aioproducer sender 1.5",
        "p50": 1.5,
        "p99": 2.5,
        "most": 3.5,
        "requests": {"PRODUCE": 500, "METADATA": 2},
        "batches": 1000,
        "metadata_mb": 0.5,
        "connections": 10,
        "rss": 20.0,
    }
    return Happening(event, **{**figures, **given})


def point(brokers: int = 10, partitions: int = 1000, **events: dict[str, Any]) -> Point:
    """``events`` are the figures of those that differ from all others."""
    names = [START, *(event.name for event in EVENTS)]
    size = Size(brokers, partitions, 10_000, 100, 100)
    return Point(size, 50.0, 0.5, [happening(name, **events.get(name, {})) for name in names])
