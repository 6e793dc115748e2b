"""One thing that is measured of all clients, and all runs of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.ratios import Spread, ratios
from benchmarks.run import Measurement
from benchmarks.works.work import Work


@dataclass(frozen=True)
class Done:
    """A run that has ended, rightly or not. Without a measurement, ``problem`` says why."""

    client: str
    round: int
    measurement: Measurement | None
    problem: str = ""


@dataclass(frozen=True)
class Case:
    """A work with records of one size; ``done`` grows while the rounds go on."""

    work: Work
    record_size: int
    records: int
    done: list[Done] = field(default_factory=list)

    @property
    def title(self) -> str:
        return f"{self.record_size:,} B records, {self.work.title}"

    def summary(self, reference: str) -> list[Summary]:
        """Of each client that took part, in the order of the turns; ratios are ``reference ÷ client``."""
        return [self._summary_of(client, reference) for client in dict.fromkeys(done.client for done in self.done)]

    def _summary_of(self, client: str, reference: str) -> Summary:
        speeds, cpus, peaks = (self._figures(client, figure) for figure in (_speed, _cpu, _peak))
        return Summary(
            client,
            Spread.of([*speeds.values()]) if speeds else None,
            Spread.of([*cpus.values()]) if cpus else None,
            Spread.of([*peaks.values()]) if peaks else None,
            ratios(self._figures(reference, _speed), speeds),
            ratios(self._figures(reference, _cpu), cpus),
            ratios(self._figures(reference, _peak), peaks),
            [f"round {done.round}: {done.problem}" for done in self.done if done.client == client and done.problem],
        )

    def _figures(self, client: str, figure: Callable[[Measurement, int], float]) -> dict[int, float]:
        """By round. A client that has not delivered everything has no figures: it is not fast, it is wrong."""
        return {
            done.round: figure(done.measurement, self.records)
            for done in self.done
            if done.client == client and done.measurement is not None and not done.problem
        }


@dataclass(frozen=True)
class Summary:
    """One client in one case: records/s, CPU µs/record, peak bytes; and the reference's figures divided by these."""

    client: str
    speed: Spread | None
    cpu: Spread | None
    peak_rss: Spread | None
    speed_ratio: Spread | None
    cpu_ratio: Spread | None
    peak_rss_ratio: Spread | None
    problems: list[str]


def _speed(measurement: Measurement, records: int) -> float:
    return records / measurement.seconds


def _cpu(measurement: Measurement, records: int) -> float:
    return measurement.cpu_seconds / records * 1e6


def _peak(measurement: Measurement, records: int) -> float:
    return measurement.peak_rss
