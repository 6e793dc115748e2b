"""Raises alerts for changes in the reports of a metrics topic.

Each producer judges by itself whether a figure is beyond its threshold, as ``health()`` does, because it knows its own
configs. Here alerts say when that begins and when it is over, and which producers have fallen silent.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from aioproducer import HealthFinding, Severity

SILENT_AFTER = 3
"""Intervals without a report."""

FORGOTTEN_AFTER_MS = 3_600_000
"""Without a report: a producer that has been silent for this long is forgotten."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is needed from a record of the metrics topic."""

    client_id: str
    instance: str
    number: int
    time_ms: int
    interval_ms: int
    last: bool
    health: tuple[HealthFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """Something begins, or is over."""

    client_id: str
    instance: str
    time_ms: int
    metric: str
    severity: Severity
    over: bool
    what: str

    def __str__(self) -> str:
        return f"{'over' if self.over else self.severity.name}: {self.client_id}: {self.metric}: {self.what}"


@dataclass(frozen=True, slots=True)
class Watched:
    """What is known of one producer."""

    newest: Report
    begun: dict[str, Severity] = field(default_factory=dict)
    silent: bool = False


SILENCE = "reports"
"""The name under which silence is reported, besides those of metrics."""


def alerts(known: dict[str, Watched], reports: Iterable[Report], now_ms: int) -> tuple[dict[str, Watched], list[Alert]]:
    """What is known after these reports, by instance, and the alerts. Producers that were closed, or have been silent
    for an hour, are forgotten."""
    known = dict(known)
    found: list[Alert] = []
    for report in sorted(reports, key=lambda report: (report.instance, report.number)):
        before = known.get(report.instance)
        if before is not None and report.number <= before.newest.number:
            continue  # the reporter's own producer may repeat one
        found += _changes(before, report)
        known[report.instance] = Watched(report, {finding.metric: finding.severity for finding in report.health})
        if report.last:
            del known[report.instance]
    for instance, watched in list(known.items()):
        newest = watched.newest
        silent_ms = now_ms - newest.time_ms
        if watched.silent and silent_ms > FORGOTTEN_AFTER_MS:
            found.append(
                _alert(
                    newest,
                    SILENCE,
                    Severity.CRITICAL,
                    "forgotten after an hour without a report",
                    over=True,
                    time_ms=now_ms,
                )
            )
            del known[instance]
        elif not watched.silent and silent_ms > SILENT_AFTER * newest.interval_ms:
            what = f"no report for {silent_ms / 1000:.0f} s, due every {newest.interval_ms / 1000:g} s"
            found.append(_alert(newest, SILENCE, Severity.CRITICAL, what, time_ms=now_ms))
            known[instance] = Watched(newest, watched.begun, silent=True)
    return known, found


def _changes(before: Watched | None, report: Report) -> Iterable[Alert]:
    begun = {} if before is None else before.begun
    if before is not None and before.silent:
        yield _alert(report, SILENCE, Severity.CRITICAL, "there is one again", over=True)
    for finding in report.health:
        if begun.get(finding.metric) != finding.severity:
            what = f"{finding.value:g} (threshold {finding.threshold:g}): {finding.what_to_do}"
            yield _alert(report, finding.metric, finding.severity, what)
    still = {finding.metric for finding in report.health}
    for metric, severity in begun.items():
        if metric not in still:
            why = "the producer was closed" if report.last else "back within its threshold"
            yield _alert(report, metric, severity, why, over=True)


def _alert(
    report: Report, metric: str, severity: Severity, what: str, *, over: bool = False, time_ms: int | None = None
) -> Alert:
    moment = report.time_ms if time_ms is None else time_ms
    return Alert(report.client_id, report.instance, moment, metric, severity, over, what)
