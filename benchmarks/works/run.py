"""One run: the order for a worker process, and its answer, both as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Run:
    """One client does one work once. ``warm_up`` records go before, and the clocks start after them.

    ``payload`` is a file of values, a line each, taken in turn; of several topics each gets some records in turn.
    ``batch_size`` is in bytes, 0 for the client's default; ``rate`` in records a second, of paced work alone.
    """

    client: str
    work: str
    bootstrap_servers: str
    topic: str
    payload: str
    records: int
    warm_up: int
    loop: str
    linger_ms: int = 5
    batch_size: int = 0
    compression: str = "none"
    keyed: bool = False
    keys: int = 0
    tasks: int = 0
    rate: float = 0.0
    topics: int = 1
    partitions: int = 6
    round_trip_ms: int = 0

    def topic_names(self) -> list[str]:
        """``topic``, or where there are several, as many names that begin with it."""
        return [self.topic] if self.topics == 1 else [f"{self.topic}-{number}" for number in range(self.topics)]


@dataclass(frozen=True)
class Measurement:
    """Of the ``records`` after the warm-up; ``cpu_seconds`` of all threads, in user and kernel; ``peak_rss`` in bytes.

    ``latency``, ``stall`` and ``computing`` are in seconds, by quantile (``p50``, ``p99``, ``p99.9``, ``max``), and
    empty where they were not measured: from a record's hand-over to its acknowledgement, how late the event loop ran,
    and for how much of that its thread had a CPU.
    ``broker_cpu`` is in seconds a record, the warm-up's counted in; 0 if unknown. ``requests`` are Produce requests,
    ``batch_bytes`` is the size of the mean batch on the wire; 0 if they were not counted.
    """

    records: int
    seconds: float
    cpu_seconds: float
    peak_rss: int
    failures: dict[str, int] = field(default_factory=dict)
    latency: dict[str, float] = field(default_factory=dict)
    stall: dict[str, float] = field(default_factory=dict)
    computing: dict[str, float] = field(default_factory=dict)
    broker_cpu: float = 0.0
    requests: int = 0
    batch_bytes: float = 0.0


@dataclass(frozen=True)
class Description:
    """A client as it is installed: what it is and which works it can do, or why it is ``missing``.

    Of a work's records it is given one in ``share``: a slow client needs fewer to be measured.
    """

    name: str
    about: str = ""
    works: list[str] = field(default_factory=list)
    idempotent: bool = False
    share: int = 1
    missing: str = ""
