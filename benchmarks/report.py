"""What people read, as Markdown or as rich's tables on a terminal; and what programs read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.case import Case, Summary
from benchmarks.environment import Environment
from benchmarks.ratios import Spread
from benchmarks.run import Description

COLUMNS = ("client", "records/s", "CPU µs/record", "peak RSS MiB")
NOTHING = "–"


@dataclass(frozen=True)
class Report:
    """All cases; the first client that is there is the one that the others are compared with."""

    environment: Environment
    clients: Sequence[Description]
    cases: Sequence[Case]
    rounds: int

    @property
    def present(self) -> list[Description]:
        return [client for client in self.clients if not client.missing]

    @property
    def reference(self) -> str:
        return self.present[0].name

    def head(self) -> list[tuple[str, str]]:
        """What was measured where."""
        lines = self.environment.lines()
        lines += [("Client", f"{client.name} {client.about}{_doubt(client)}") for client in self.present]
        lines += [("Left out", f"{client.name}: {client.missing}") for client in self.clients if client.missing]
        return lines

    def columns(self) -> tuple[str, ...]:
        return (*COLUMNS, *(f"{self.reference} ÷ it: {figure}" for figure in ("speed", "CPU", "RSS")))

    def rows(self, case: Case) -> list[tuple[str, ...]]:
        return [_row(summary, summary.client == self.reference) for summary in case.summary(self.reference)]

    def note(self, case: Case) -> str:
        return f"{case.records:,} records a run, {self.rounds} rounds; medians, of ratios per round with (least–most)"

    def problems(self) -> list[str]:
        """Everything that went wrong, in one line each."""
        return [
            f"{case.title}: {summary.client}, {problem}"
            for case in self.cases
            for summary in case.summary(self.reference)
            for problem in summary.problems
        ]

    def markdown(self) -> str:
        lines = [f"- {name}: {value}" for name, value in self.head()]
        for case in self.cases:
            table = [self.columns(), ("---", *["---:"] * (len(self.columns()) - 1)), *self.rows(case)]
            lines += ["", f"### {case.title}", "", *("| " + " | ".join(row) + " |" for row in table)]
            lines += ["", self.note(case)]
        if problems := self.problems():
            lines += ["", "### Problems", "", *(f"- {problem}" for problem in problems)]
        return "\n".join(lines) + "\n"

    def print_to_terminal(self) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console()
        head = Table.grid(padding=(0, 2))
        for name, value in self.head():
            head.add_row(Text(name, style="dim"), Text(value))
        console.print(head)
        for case in self.cases:
            table = Table(title=case.title, title_justify="left", caption=self.note(case), caption_justify="left")
            for number, column in enumerate(self.columns()):
                table.add_column(column, justify="right" if number else "left")
            for row in self.rows(case):
                table.add_row(*row)
            console.print(table)
        for problem in self.problems():
            console.print(Text(problem, style="bold red"))

    def json(self) -> dict[str, Any]:
        """Everything, each run included."""
        return {
            "environment": asdict(self.environment),
            "clients": [asdict(client) for client in self.clients],
            "reference": self.reference,
            "rounds": self.rounds,
            "cases": [
                {
                    "work": case.work.name,
                    "record_size": case.record_size,
                    "records": case.records,
                    "runs": [asdict(done) for done in case.done],
                    "summary": [asdict(summary) for summary in case.summary(self.reference)],
                }
                for case in self.cases
            ],
        }


def _doubt(client: Description) -> str:
    return "" if client.idempotent else ", not idempotent"


def _row(summary: Summary, is_reference: bool) -> tuple[str, ...]:
    peak = summary.peak_rss
    ratios = (summary.speed_ratio, summary.cpu_ratio, summary.peak_rss_ratio)
    return (
        summary.client,
        NOTHING if summary.speed is None else f"{summary.speed.median:,.0f}",
        NOTHING if summary.cpu is None else f"{summary.cpu.median:.2f}",
        NOTHING if peak is None else f"{peak.median / 2**20:.0f}",
        *("" if is_reference else _ratio(ratio) for ratio in ratios),
    )


def _ratio(ratio: Spread | None) -> str:
    return NOTHING if ratio is None else f"{ratio.median:.2f} ({ratio.least:.2f}–{ratio.most:.2f})"
