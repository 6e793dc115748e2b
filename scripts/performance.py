"""Writes the figures in docs/ that are measured, and draws the plots of docs/performance.md, from what the benchmarks
have left in benchmarks/measured/.

python -m benchmarks --json benchmarks/measured/comparison.json
python -m benchmarks curves --json benchmarks/measured/curves.json
python -m benchmarks encode --json benchmarks/measured/encode.json
python -m benchmarks schemas --json benchmarks/measured/schemas.json
python -m benchmarks lines --json benchmarks/measured/lines.json
python -m benchmarks linger --json benchmarks/measured/linger.json
python -m benchmarks spark --json benchmarks/measured/spark.json
python -m benchmarks audit --json benchmarks/measured/audit.json
python -m benchmarks services --parts speed,instructions,trouble --json benchmarks/measured/services.json
python -m benchmarks broker --json benchmarks/measured/broker.json
python -m benchmarks connections --json benchmarks/measured/connections.json
python -m benchmarks attacks --json benchmarks/measured/attacks.json
python -m benchmarks units --json benchmarks/measured/units.json
python -m benchmarks outbox --json benchmarks/measured/outbox.json
python -m benchmarks fleet --json benchmarks/measured/fleet.json
python -m benchmarks imports --json benchmarks/measured/imports.json
PYTHONPATH=. python scripts/performance.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol, Self

from benchmarks.attacks import attacks
from benchmarks.broker import broker, connections
from benchmarks.comparison.case import Case
from benchmarks.comparison.curves import Curves
from benchmarks.comparison.figures import FIGURES, Figure
from benchmarks.comparison.lines import Lines
from benchmarks.comparison.report import NOTHING, TARGET_COLUMNS, Report, markdown_table
from benchmarks.fleet import fleet
from benchmarks.harness import results
from benchmarks.harness.environment import Environment
from benchmarks.outbox import outbox
from benchmarks.pipelining import linger
from benchmarks.record_costs import encode, schemas
from benchmarks.services import services, units
from benchmarks.spark import audit, spark
from benchmarks.stress import imports
from benchmarks.works.works import PACED

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "docs/broker-attacks.md",
        "docs/outbox.md",
        "docs/performance.md",
        "docs/scale.md",
        "docs/services.md",
        "docs/spark.md",
        "docs/units.md",
    )
]
MEASURED = ROOT / "benchmarks" / "measured"
LEAD_WORKS = ("stream-100", "stream-1000", "stream-10000", "keyed", "partitions-4000", "zstd", "tasks-100")
LEAD_CLIENTS = ("confluent-kafka", "confluent-kafka-aio", "aiokafka", "java", "franz-go")
BUSY = 0.1
"""With a larger share of its CPU time spent on other things, what a machine tells is provisional."""
SECTION = re.compile(r"(?<=<!-- figures: )([a-z]+) -->\n.*?(?=<!-- end of figures -->)", re.DOTALL)


def environment(report: Report) -> list[str]:
    lines = [f"- {name}: {value}" for name, value in report.head() if name not in ("Load before", "Left out")]
    return [*lines, *provisional(report.environment)]


def provisional(environment: Environment) -> list[str]:
    """What is said of a busy machine."""
    if environment.others is not None and environment.others <= BUSY:
        return []
    return [
        "",
        "**Provisional**: the machine was busy with other things, so that speeds and latencies are a small",
        "part of what it can do, and their ratios are loose; CPU per record and memory suffer less.",
    ]


def lead(report: Report) -> list[str]:
    """A few works, with every delivery read, beside the clients that people compare."""
    present = {client.name for client in report.present}
    others = [name for name in LEAD_CLIENTS if name in present]
    rows = [
        (
            case.work.title,
            _figures(case, "aioproducer")[0],
            *(_ratio(case, "aioproducer", other) or NOTHING for other in others),
        )
        for case in report.cases
        if case.work.name in LEAD_WORKS and "aioproducer" in case.clients()
    ]
    date = report.environment.date.partition(" ")[0]
    return [
        *markdown_table(("work", "records/s", *(f"÷ {name}" for name in others)), rows),
        "",
        f"{date}, {report.environment.machine}; {report.environment.broker}.",
    ]


def headline(report: Report) -> list[str]:
    """How many times faster than each other client, work by work; of paced work that would say nothing.

    First with every delivery read, as the other clients' are, then with none read.
    """
    ours = ("aioproducer", "aioproducer-unread")
    others = [client.name for client in report.present if not client.name.startswith("aioproducer")]
    rows = []
    for case in report.cases:
        if case.work.way != PACED:
            for subject in (client for client in ours if client in case.clients()):
                ratios = (_ratio(case, subject, other) for other in others)
                rows.append((case.work.name, subject, *_figures(case, subject), *ratios))
    return markdown_table(("work", "measured", "records/s", "CPU µs/record", *(f"÷ {name}" for name in others)), rows)


def _figures(case: Case, client: str) -> list[str]:
    spreads = {name: case.spread(client, FIGURES[name]) for name in ("speed", "cpu")}
    return [NOTHING if spread is None else FIGURES[name].text(spread.median) for name, spread in spreads.items()]


def _ratio(case: Case, client: str, other: str) -> str:
    ratio = case.ratio(client, other, FIGURES["speed"])
    return "" if ratio is None else f"{ratio.median:.2f}"


def targets(report: Report) -> list[str]:
    rows = report.target_rows()
    met = sum(row[-1] == "met" for row in rows)
    return [f"{met} of {len(rows)} are met.", "", *markdown_table(TARGET_COLUMNS, rows)]


def by_client(report: Report, figure: Figure, *, ours: bool = False) -> list[str]:
    """A figure of every client in every work in which somebody has it; ``ours``: of aioproducer's ways alone."""
    clients = [client.name for client in report.present if not ours or client.name.startswith("aioproducer")]
    rows = []
    for case in report.cases:
        spreads = [case.spread(client, figure) for client in clients]
        if any(spreads):
            rows.append((case.work.name, *("" if spread is None else figure.text(spread.median) for spread in spreads)))
    return markdown_table(("work", *clients), rows)


def stalls(report: Report) -> list[str]:
    kinds = (
        (FIGURES["stall"], "99.9 % of the moments came at most so late:"),
        (FIGURES["computing"], "And 99.9 % of them were no later than this by the loop's own computing:"),
        (FIGURES["longest"], "The longest stall:"),
    )
    lines = []
    for figure, title in kinds:
        lines += ["", title, "", *by_client(report, figure, ours=True)]
    return lines[1:]


def works(report: Report) -> list[str]:
    lines = []
    for case in report.cases:
        columns, rows = report.table(case)
        lines += [
            "",
            f"#### {case.work.name}: {case.work.title}",
            "",
            *markdown_table(columns, rows),
            "",
            report.note(case),
        ]
    return lines[1:]


def curves(found: Curves) -> list[str]:
    lines = environment(found.report)
    for axis in found.axes:
        lines += ["", f"#### {axis.title}", "", *found.table(axis)]
    return [*lines, "", f"Medians of {found.report.rounds} rounds; CPU in microseconds a record."]


def lines(found: Lines) -> list[str]:
    return [*environment(found.report), "", *found.tables("####")]


class Alone(Protocol):
    """The report of a command without clients side by side."""

    @property
    def environment(self) -> Environment: ...

    def tables(self) -> list[str]: ...


def alone(found: Alone) -> list[str]:
    lines = [f"- {name}: {value}" for name, value in found.environment.lines() if name != "Load before"]
    return [*lines, *provisional(found.environment), "", *found.tables()]


class Measured(NamedTuple):
    """What the pages are made of."""

    comparison: Report
    along: Curves
    far: Lines
    encoded: encode.Report
    serialized: schemas.Report
    awaited: linger.Report
    sunk: spark.Report
    audited: audit.Report
    served: services.Report
    embedded: broker.Report
    connected: connections.Report
    attacked: attacks.Report
    in_units: units.Report
    relayed: outbox.Report
    simulated: fleet.Report
    imported: imports.Report

    @classmethod
    def read(cls) -> Self:
        return cls(
            Report.from_json(results.read(MEASURED / "comparison.json")),
            Curves.from_json(results.read(MEASURED / "curves.json")),
            Lines.from_json(results.read(MEASURED / "lines.json")),
            results.read_as(encode.Report, MEASURED / "encode.json"),
            results.read_as(schemas.Report, MEASURED / "schemas.json"),
            results.read_as(linger.Report, MEASURED / "linger.json"),
            results.read_as(spark.Report, MEASURED / "spark.json"),
            results.read_as(audit.Report, MEASURED / "audit.json"),
            results.read_as(services.Report, MEASURED / "services.json"),
            results.read_as(broker.Report, MEASURED / "broker.json"),
            results.read_as(connections.Report, MEASURED / "connections.json"),
            results.read_as(attacks.Report, MEASURED / "attacks.json"),
            results.read_as(units.Report, MEASURED / "units.json"),
            results.read_as(outbox.Report, MEASURED / "outbox.json"),
            results.read_as(fleet.Report, MEASURED / "fleet.json"),
            results.read_as(imports.Report, MEASURED / "imports.json"),
        )

    def sections(self) -> Mapping[str, Callable[[], list[str]]]:
        comparison = self.comparison
        return {
            "lead": lambda: lead(comparison),
            "environment": lambda: environment(comparison),
            "headline": lambda: headline(comparison),
            "targets": lambda: targets(comparison),
            "broker": lambda: by_client(comparison, FIGURES["broker"]),
            "memory": lambda: by_client(comparison, FIGURES["rss"]),
            "stalls": lambda: stalls(comparison),
            "works": lambda: works(comparison),
            "curves": lambda: curves(self.along),
            "lines": lambda: lines(self.far),
            "encode": lambda: alone(self.encoded),
            "schemas": lambda: alone(self.serialized),
            "linger": lambda: alone(self.awaited),
            "spark": lambda: alone(self.sunk),
            "audit": lambda: alone(self.audited),
            "services": lambda: alone(self.served),
            "trouble": self.served.trouble,
            "embedded": lambda: alone(self.embedded),
            "connections": lambda: alone(self.connected),
            "attacks": lambda: alone(self.attacked),
            "units": lambda: alone(self.in_units),
            "outbox": lambda: alone(self.relayed),
            "fleet": lambda: alone(self.simulated),
            "imports": lambda: alone(self.imported),
        }

    def written(self, text: str) -> str:
        """``text`` with these figures in the places of those that it has."""
        made = self.sections()
        return SECTION.sub(lambda found: "\n".join([f"{found[1]} -->", *made[found[1]](), ""]), text)

    def plots(self) -> dict[Path, str]:
        drawn = {"comparison.svg": self.comparison.svg(), "curves.svg": self.along.svg(), "lines.svg": self.far.svg()}
        return {ROOT / "docs" / name: svg for name, svg in drawn.items()}


def main() -> None:
    measured = Measured.read()
    for page in PAGES:
        page.write_text(measured.written(page.read_text(encoding="utf-8")), encoding="utf-8")
    for file, drawn in measured.plots().items():
        file.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
