"""The targets of aioproducer beside other clients, and whether it meets them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.comparison.case import Case
from benchmarks.comparison.figures import FIGURES
from benchmarks.harness.statistics import Spread


@dataclass(frozen=True)
class Target:
    """In a work, a client's figure divided by that of ``against``; or less that, if ``apart``; or, without ``against``,
    the figure itself."""

    work: str
    client: str
    figure: str
    against: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    apart: bool = False

    @property
    def text(self) -> str:
        bound = f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"
        if self.against is None:
            return f"{self.client}, {FIGURES[self.figure].title}: {bound}"
        sign = "−" if self.apart else "÷"
        return f"{self.client} {sign} {self.against}, {FIGURES[self.figure].title}: {bound}"

    def met_by(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True)
class Verdict:
    """``measured`` is None if the work was not done, or not by both."""

    target: Target
    measured: Spread | None

    @property
    def text(self) -> str:
        if self.measured is None:
            return "not measured"
        return "met" if self.target.met_by(self.measured.median) else "**not met**"


def judge(cases: Iterable[Case], targets: Sequence[Target]) -> list[Verdict]:
    by_work = {case.work.name: case for case in cases}
    return [Verdict(target, _measured(by_work.get(target.work), target)) for target in targets]


def _measured(case: Case | None, target: Target) -> Spread | None:
    if case is None:
        return None
    figure = FIGURES[target.figure]
    if target.against is None:
        return case.spread(target.client, figure)
    compared = case.difference if target.apart else case.ratio
    return compared(target.client, target.against, figure)


_OURS, _UNREAD, _MANY, _TABLE = "aioproducer", "aioproducer-unread", "aioproducer-many", "aioproducer-table"
_CONFLUENT, _AIO, _AIOKAFKA, _JAVA, _GO = "confluent-kafka", "confluent-kafka-aio", "aiokafka", "java", "franz-go"
_GC = "aioproducer-gc"
_BULK = ("stream-100", "stream-100-64k")

TARGETS = (
    Target("stream-100", _OURS, "speed", _CONFLUENT, at_least=3.5),
    Target("stream-100", _OURS, "speed", _GO, at_least=1.1),
    Target("stream-100", _UNREAD, "speed", _AIO, at_least=8.0),
    Target("stream-100", _UNREAD, "speed", _AIOKAFKA, at_least=12.0),
    Target("stream-100", _UNREAD, "speed", _JAVA, at_least=4.0),
    Target("stream-1000", _OURS, "speed", _CONFLUENT, at_least=1.2),
    Target("stream-1000", _OURS, "speed", _GO, at_least=1.1),
    Target("stream-1000-64k", _UNREAD, "speed", _CONFLUENT, at_least=1.4),
    Target("stream-1000", _UNREAD, "speed", _AIO, at_least=2.0),
    Target("stream-1000", _UNREAD, "speed", _AIOKAFKA, at_least=5.0),
    Target("stream-10000", _OURS, "speed", _CONFLUENT, at_least=1.1),
    Target("stream-100000", _OURS, "speed", _CONFLUENT, at_least=1.1),
    *(Target(work, _OURS, "speed", _CONFLUENT, at_least=2.0) for work in ("partitions-4000", "partitions-10000")),
    Target("tasks-100", _OURS, "speed", _AIOKAFKA, at_least=6.5),
    Target("tasks-1000", _OURS, "speed", _AIOKAFKA, at_least=16.0),
    *(Target(work, bulk, "speed", _GO, at_least=1.5) for work in _BULK for bulk in (_MANY, _TABLE)),
    *(Target("stream-1000-64k", bulk, "speed", _GO, at_least=1.0) for bulk in (_MANY, _TABLE)),
    *(Target(work, _OURS, "speed", _CONFLUENT, at_least=1.1) for work in ("keyed", "lz4", "zstd")),
    Target("stream-100", _UNREAD, "cpu", _CONFLUENT, at_most=0.5),
    *(Target(work, bulk, "cpu", _GO, at_most=0.4) for work in _BULK for bulk in (_MANY, _TABLE)),
    *(
        Target(work, _OURS, "together", other, at_most=1.0)
        for work in ("stream-100", "stream-1000", "keyed", "stream-10000", "stream-100000", "lz4", "zstd")
        for other in (_CONFLUENT, _GO)
    ),
    Target("single", _OURS, "p50", "bare-socket", at_most=0.03, apart=True),
    Target("single", _OURS, "p50", _CONFLUENT, at_most=0.75),
    Target("single", _OURS, "p50", _AIOKAFKA, at_most=0.6),
    Target("hundred", _OURS, "speed", _AIOKAFKA, at_least=3.0),
    Target("hundred", _OURS, "p50", _AIOKAFKA, at_most=0.5),
    Target("hundred", _OURS, "p99", _AIOKAFKA, at_most=1.0),
    Target("paced", _OURS, "p99", _CONFLUENT, at_most=0.7),
    *(Target(work, ours, "stall", at_most=3.0) for work in ("stream-100", "lz4", "zstd") for ours in (_OURS, _GC)),
    *(Target("stream-100", bulk, "stall", at_most=3.0) for bulk in (_MANY, _TABLE)),
    Target("stream-100", "aioproducer-compat", "stall", at_most=10.0),
    Target("stream-100", "aioproducer-pure", "speed", _AIOKAFKA, at_least=1.4),
    *(Target("stream-100", ours, "rss", _CONFLUENT, at_most=1.0) for ours in (_OURS, _UNREAD)),
)
