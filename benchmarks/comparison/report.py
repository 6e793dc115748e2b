"""Reports for people, as Markdown or as rich's tables on a terminal; and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from benchmarks.comparison.bars import Bars
from benchmarks.comparison.case import Case, Done, Summary
from benchmarks.comparison.figures import FIGURES, RATIOS, Figure
from benchmarks.comparison.targets import TARGETS, Verdict, judge
from benchmarks.harness.environment import Environment
from benchmarks.harness.statistics import Spread
from benchmarks.harness.svg import svg
from benchmarks.works.run import Description, Measurement
from benchmarks.works.works import Work

NOTHING = "–"
TARGET_COLUMNS = ("work", "target", "measured (least–most)", "")
PLOTTED = ("stream-100", "stream-1000", "tasks-100")
Row = tuple[str, ...]


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
        lines += [("Left out", f"{case.work.name}: {reason}") for case in self.cases for reason in case.skipped]
        return lines

    def table(self, case: Case) -> tuple[Row, list[Row]]:
        """The names of the columns, for figures that any client has, and a row for each client."""
        summaries = case.summary(self.reference)
        figures = [figure for figure in FIGURES.values() if any(figure.name in found.figures for found in summaries)]
        compared = [figure for figure in figures if figure.name in RATIOS]
        columns = ("client", *(figure.title for figure in figures))
        columns += tuple(f"{self.reference} ÷ it: {figure.name}" for figure in compared)
        return columns, [self._row(summary, figures, compared) for summary in summaries]

    def _row(self, summary: Summary, figures: Sequence[Figure], compared: Sequence[Figure]) -> Row:
        found = summary.figures
        cells = [figure.text(found[figure.name].median) if figure.name in found else NOTHING for figure in figures]
        if summary.client == self.reference:
            return summary.client, *cells, *("" for _ in compared)
        return summary.client, *cells, *(_spread(summary.ratios.get(figure.name)) for figure in compared)

    def note(self, case: Case) -> str:
        most = max((done.measurement.records for done in case.done if done.measurement is not None), default=0)
        rounds = max((done.round for done in case.done), default=0)
        return (
            f"{most:,} records a run, of slow clients fewer; {rounds} rounds; medians, of ratios per round with "
            "(least–most)"
        )

    def verdicts(self) -> list[Verdict]:
        """Of the targets whose works were chosen."""
        chosen = {case.work.name for case in self.cases}
        return judge(self.cases, [target for target in TARGETS if target.work in chosen])

    def target_rows(self) -> list[Row]:
        return [
            (verdict.target.work, verdict.target.text, _spread(verdict.measured), verdict.text)
            for verdict in self.verdicts()
        ]

    def problems(self) -> list[str]:
        """Everything that went wrong, in one line each. A target that is not met is none."""
        unfinished = ["it was interrupted"] if self.environment.minutes is None else []
        return unfinished + [
            f"{case.work.name}: {summary.client}, {problem}"
            for case in self.cases
            for summary in case.summary(self.reference)
            for problem in summary.problems
        ]

    def markdown(self) -> str:
        lines = [f"- {name}: {value}" for name, value in self.head()]
        for case in self.cases:
            if case.skipped:
                continue
            columns, rows = self.table(case)
            lines += [
                "",
                f"### {case.work.name}: {case.work.title}",
                "",
                *markdown_table(columns, rows),
                "",
                self.note(case),
            ]
        if rows := self.target_rows():
            lines += ["", "### Targets", "", *markdown_table(TARGET_COLUMNS, rows)]
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
        tables = [
            (f"{case.work.name}: {case.work.title}", self.note(case), *self.table(case))
            for case in self.cases
            if not case.skipped
        ]
        if rows := self.target_rows():
            tables.append(("Targets", "", TARGET_COLUMNS, [tuple(cell.strip("*") for cell in row) for row in rows]))
        for title, note, columns, rows in tables:
            table = Table(title=title, title_justify="left", caption=note, caption_justify="left")
            for number, column in enumerate(columns):
                table.add_column(column, justify="right" if number else "left")
            for row in rows:
                table.add_row(*row)
            console.print(table)
        for problem in self.problems():
            console.print(Text(problem, style="bold red"))

    def svg(self) -> str:
        """Bars: how many times faster the reference was than other clients, in the most telling works."""
        charts = []
        for case in self.cases:
            others = [client for client in case.clients() if case.work.name in PLOTTED and _is_another(client)]
            found = [(client, case.ratio(self.reference, client, FIGURES["speed"])) for client in others]
            if bars := [(client, ratio) for client, ratio in found if ratio is not None]:
                charts.append(Bars(case.work.name, f"records/s: {self.reference} ÷ it", bars))
        return svg(*charts)

    def json(self) -> dict[str, Any]:
        """Everything that was measured, each run."""
        return {
            "environment": asdict(self.environment),
            "clients": [asdict(client) for client in self.clients],
            "rounds": self.rounds,
            "cases": [
                {
                    "work": asdict(case.work),
                    "skipped": case.skipped,
                    "runs": [asdict(done) for done in case.done],
                }
                for case in self.cases
            ],
        }

    @classmethod
    def from_json(cls, results: dict[str, Any]) -> Self:
        """The report that ``json`` was made of."""
        return cls(
            Environment(**results["environment"]),
            [Description(**client) for client in results["clients"]],
            [_case(case) for case in results["cases"]],
            results["rounds"],
        )


def markdown_table(columns: Row, rows: Sequence[Row]) -> list[str]:
    """Its lines."""
    return ["| " + " | ".join(row) + " |" for row in (columns, ("---", *["---:"] * (len(columns) - 1)), *rows)]


def _case(results: dict[str, Any]) -> Case:
    runs = [
        Done(run["client"], run["round"], run["measurement"] and Measurement(**run["measurement"]), run["problem"])
        for run in results["runs"]
    ]
    return Case(Work(**results["work"]), runs, results["skipped"])


def _is_another(client: str) -> bool:
    """Whether it is none of aioproducer's own ways."""
    return not client.startswith("aioproducer")


def _doubt(client: Description) -> str:
    return "" if client.idempotent else ", not idempotent"


def _spread(spread: Spread | None) -> str:
    return NOTHING if spread is None else str(spread)
