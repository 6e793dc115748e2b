"""One run: what a worker process is told, and what it answers. Both travel as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Run:
    """One client does one work once. ``warm_up`` records go before, and the clocks start after them."""

    client: str
    work: str
    bootstrap_servers: str
    topic: str
    record_size: int
    records: int
    warm_up: int
    loop: str


@dataclass(frozen=True)
class Measurement:
    """Of the records after the warm-up; ``cpu_seconds`` of all threads, in user and kernel; ``peak_rss`` in bytes."""

    seconds: float
    cpu_seconds: float
    peak_rss: int
    failures: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """A client as it is installed: what it is and which works it can do, or why it is ``missing``."""

    name: str
    about: str = ""
    works: list[str] = field(default_factory=list)
    idempotent: bool = False
    missing: str = ""
