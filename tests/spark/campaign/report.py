"""The results of campaigns: a file of JSON to which each run is added, and the same for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .plan import Kind, Mode, Moment


@dataclass(frozen=True)
class Interrupted:
    """An interruption that was made. ``after``: what the driver was doing. ``error``: what the attempt failed of."""

    kind: Kind
    after: Moment
    mode: Mode
    error: str | None


@dataclass
class Run:
    """One life of the cluster."""

    seed: int
    date: str
    versions: str
    seconds: float = 0.0
    interrupted: list[Interrupted] = field(default_factory=list)
    attempts: int = 0
    writes: int = 0
    rows: int = 0
    copies: int = 0
    """Attempts of tasks beside, or after, a first one."""
    missing: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    left_open: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    """Writes that failed again and again without an interruption, and why."""

    def problems(self) -> list[str]:
        lists = {
            "missing": self.missing,
            "there twice": self.twice,
            "never written": self.unexpected,
            "transactions left open": self.left_open,
            "stuck": self.stuck,
        }
        return [f"seed {self.seed}: {what}: {some[:5]} ({len(some)})" for what, some in lists.items() if some]


def add(path: Path, run: Run) -> list[Run]:
    """Adds the run to the file, and writes the page beside it; all runs."""
    runs = [*read(path), run]
    path.write_text(json.dumps([asdict(one) for one in runs], indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(page(runs), encoding="utf-8")
    return runs


def read(path: Path) -> list[Run]:
    """None if there is no such file yet."""
    if not path.exists():
        return []
    return [_run(one) for one in json.loads(path.read_text(encoding="utf-8"))]


def _run(fields: dict[str, Any]) -> Run:
    interrupted = [
        Interrupted(Kind(one["kind"]), Moment(one["after"]), Mode(one["mode"]), one["error"])
        for one in fields.pop("interrupted")
    ]
    return Run(**fields, interrupted=interrupted)


def page(runs: Sequence[Run]) -> str:
    """As Markdown."""
    problems = [problem for run in runs for problem in run.problems()]
    made = [one for run in runs for one in run.interrupted]
    ended = Counter(one.error or "the attempt succeeded" for one in made)
    verdict = "Every row was read once, and no query was stuck" if not problems else "**There are problems**"
    lines = [
        "# Spark's sink, exactly once, under kills and interruptions",
        "",
        f"{verdict}: by confluent-kafka's consumer, with `isolation.level=read_committed`. Made by",
        "",
        f"    python -m tests.spark.campaign --seed {' '.join(str(run.seed) for run in runs)}",
        "",
        "| what | how many |",
        "| --- | --- |",
        *(f"| {name} | {value} |" for name, value in _figures(runs)),
        "",
        "## What was interrupted, and when",
        "",
        *_table(made),
        "",
        "## How the interrupted attempts ended",
        "",
        "| as the driver saw it | interruptions |",
        "| --- | --- |",
        *(f"| {error} | {number} |" for error, number in ended.most_common()),
    ]
    if problems:
        lines += ["", "## Problems", "", *(f"- {problem}" for problem in problems)]
    return "\n".join(lines) + "\n"


def _figures(runs: Sequence[Run]) -> list[tuple[str, str]]:
    modes = Counter(one.mode for run in runs for one in run.interrupted)
    return [
        ("from", f"{runs[0].date}, the last life from {runs[-1].date}"),
        ("with", runs[-1].versions),
        ("cluster", "standalone: a master, and two workers of two cores each"),
        ("lives of the cluster", str(len(runs))),
        ("minutes", f"{sum(run.seconds for run in runs) / 60:.0f}"),
        ("kills and interruptions", f"{sum(len(run.interrupted) for run in runs)}"),
        ("of writes as", ", ".join(f"{mode} {modes[mode]}" for mode in Mode)),
        ("writes, all of which were completed", f"{sum(run.writes for run in runs):,}"),
        ("attempts of writes", f"{sum(run.attempts for run in runs):,}"),
        ("attempts of tasks after or beside a first one", f"{sum(run.copies for run in runs):,}"),
        ("rows", f"{sum(run.rows for run in runs):,}"),
        ("rows missing", str(sum(len(run.missing) for run in runs))),
        ("rows read twice", str(sum(len(run.twice) for run in runs))),
        ("writes that were stuck", str(sum(len(run.stuck) for run in runs))),
    ]


def _table(made: Sequence[Interrupted]) -> list[str]:
    found = Counter((one.kind, one.after) for one in made)
    rows = [
        f"| {kind} | {' | '.join(str(found[kind, moment]) for moment in Moment)} | "
        f"{sum(found[kind, moment] for moment in Moment)} |"
        for kind in Kind
    ]
    return [f"| | {' | '.join(Moment)} | all |", f"| --- |{' --- |' * (len(Moment) + 1)}", *rows]
