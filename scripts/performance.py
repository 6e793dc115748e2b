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
python -m benchmarks broker-costs --json benchmarks/measured/broker-costs.json
python -m benchmarks connections --json benchmarks/measured/connections.json
python -m benchmarks attacks --json benchmarks/measured/attacks.json
python -m benchmarks units --json benchmarks/measured/units.json
python -m benchmarks outbox --json benchmarks/measured/outbox.json
python -m benchmarks fleet --json benchmarks/measured/fleet.json
python -m benchmarks imports --json benchmarks/measured/imports.json
python -m benchmarks window --json benchmarks/measured/window.json
python -m benchmarks pipeline --virtual --arrivals paced --json benchmarks/measured/pipeline.json
python -m benchmarks pipeline --virtual --arrivals paced --partitions 6 --round-trips-ms 150 --windows 5,50 \
    --json benchmarks/measured/pipeline-partitions.json
python -m benchmarks pipeline --arrivals paced --windows 5,50 --seconds 2 \
    --json benchmarks/measured/pipeline-sockets.json
python -m benchmarks in-flight --json benchmarks/measured/in-flight.json
python -m benchmarks memory --json benchmarks/measured/memory.json
python -m benchmarks back-pressure --json benchmarks/measured/back-pressure.json
python -m benchmarks outage --json benchmarks/measured/outage.json
python -m benchmarks stalls --json benchmarks/measured/stalls.json
python -m benchmarks scale --rounds 2 --json benchmarks/measured/scale.json
python -m benchmarks threads --json benchmarks/measured/threads.json
python -m benchmarks observability --json benchmarks/measured/observability.json
PYTHONPATH=. python scripts/performance.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, Self, cast

from benchmarks.attacks import attacks
from benchmarks.broker import broker, connections
from benchmarks.comparison.case import Case
from benchmarks.comparison.curves import Curves
from benchmarks.comparison.figures import FIGURES, Figure
from benchmarks.comparison.lines import Lines
from benchmarks.comparison.report import NOTHING, TARGET_COLUMNS, Report, markdown_table
from benchmarks.fleet import fleet
from benchmarks.fleet.budget import Broker, Budget, Client
from benchmarks.harness import results
from benchmarks.harness.command import Plotted
from benchmarks.harness.environment import Environment
from benchmarks.outbox import outbox
from benchmarks.pipelining import in_flight, linger, pipeline, window
from benchmarks.record_costs import broker_costs, encode, observability, schemas
from benchmarks.services import services, units
from benchmarks.spark import audit, spark
from benchmarks.stress import back_pressure, imports, memory, outage, scale, stalls, threads
from benchmarks.works.works import PACED

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "docs/broker-attacks.md",
        "docs/migrating.md",
        "docs/outbox.md",
        "docs/performance.md",
        "docs/scale.md",
        "docs/services.md",
        "docs/spark.md",
        "docs/threads.md",
        "docs/units.md",
    )
]
MEASURED = ROOT / "benchmarks" / "measured"
LEAD_WORKS = ("stream-100", "stream-1000", "stream-10000", "keyed", "partitions-4000", "zstd", "tasks-100")
LEAD_CLIENTS = ("confluent-kafka", "confluent-kafka-aio", "aiokafka", "java", "franz-go")
MOVED_WORKS = ("stream-100", "keyed", "tasks-100")
BUSY = 0.1
"""With a larger share of its CPU time spent on other things, what a machine tells is provisional."""
SECTION = re.compile(r"(?<=<!-- figures: )([a-z-]+) -->\n.*?(?=<!-- end of figures -->)", re.DOTALL)


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


def moving(report: Report) -> list[str]:
    """What the class in place of aiokafka's, and then the producer itself, gain beside aiokafka."""
    rows = [
        (case.work.title, *(_gain(case, client) for client in ("aioproducer-compat", "aioproducer")))
        for case in report.cases
        if case.work.name in MOVED_WORKS and "aiokafka" in case.clients()
    ]
    date = report.environment.date.partition(" ")[0]
    return [
        *markdown_table(("work", "this class", "`KafkaProducer`"), rows),
        "",
        f"{date}, commit {report.environment.commit}, {report.environment.machine}; {report.environment.broker}.",
    ]


def _gain(case: Case, client: str) -> str:
    cpu = case.ratio("aiokafka", client, FIGURES["cpu"])
    return NOTHING if cpu is None else f"{_ratio(case, client, 'aiokafka')} ({cpu.median:.2f})"


def lateness(report: Report) -> list[str]:
    kinds = (
        (FIGURES["stall"], "The 99.9th percentile of the delay:"),
        (FIGURES["computing"], "The part of it that is the loop's own computing:"),
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


def alone(found: Alone, *, virtual: bool = False) -> list[str]:
    """``virtual``: all in virtual time, in which it does not matter what else the machine does."""
    left_out = ["Load before", *(["Busy with other things"] if virtual else [])]
    lines = [f"- {name}: {value}" for name, value in found.environment.lines() if name not in left_out]
    return [*lines, *([] if virtual else provisional(found.environment)), "", *found.tables()]


ALONE: Mapping[str, type[Alone]] = {
    "attacks": attacks.Report,
    "audit": audit.Report,
    "back-pressure": back_pressure.Report,
    "broker": broker.Report,
    "broker-costs": broker_costs.Report,
    "connections": connections.Report,
    "encode": encode.Report,
    "fleet": fleet.Report,
    "imports": imports.Report,
    "in-flight": in_flight.Report,
    "linger": linger.Report,
    "memory": memory.Report,
    "observability": observability.Report,
    "outage": outage.Report,
    "outbox": outbox.Report,
    "pipeline": pipeline.Report,
    "pipeline-partitions": pipeline.Report,
    "pipeline-sockets": pipeline.Report,
    "scale": scale.Report,
    "schemas": schemas.Report,
    "services": services.Report,
    "spark": spark.Report,
    "stalls": stalls.Report,
    "threads": threads.Report,
    "units": units.Report,
    "window": window.Report,
}
"""By the name of the file."""
SECTIONS = {"broker": "embedded", "memory": "held", "stalls": "storms"}
"""Of the files whose names are those of sections of the comparison."""
VIRTUAL = ("pipeline", "pipeline-partitions")
PLOTTED = ("pipeline", "window")


def median_of(report: Report, work: str, client: str, figure: str) -> float:
    """ValueError if it was not measured."""
    for case in report.cases:
        if case.work.name == work and (spread := case.spread(client, FIGURES[figure])) is not None:
            return spread.median
    raise ValueError(f"benchmarks/measured/comparison.json has no {figure} of {client} in {work}")


def fleet_budget(comparison: Report, costs: broker_costs.Report, simulated: fleet.Report) -> Budget:
    broker = Broker(costs.request, costs.batch, costs.record)
    client = Client(
        single=median_of(comparison, "single", "aioproducer", "cpu"),
        full=median_of(comparison, "stream-100", "aioproducer", "cpu"),
        most=median_of(comparison, "stream-100", "aioproducer", "speed"),
        mib=median_of(comparison, "single", "aioproducer", "rss"),
    )
    return Budget(broker, client, simulated)


class Measured(NamedTuple):
    """What the pages are made of."""

    comparison: Report
    along: Curves
    far: Lines
    alone: Mapping[str, Alone]
    """By the name of the file."""

    @classmethod
    def read(cls) -> Self:
        return cls(
            Report.from_json(results.read(MEASURED / "comparison.json")),
            Curves.from_json(results.read(MEASURED / "curves.json")),
            Lines.from_json(results.read(MEASURED / "lines.json")),
            {name: results.read_as(kind, MEASURED / f"{name}.json") for name, kind in ALONE.items()},
        )

    def sections(self) -> Mapping[str, Callable[[], list[str]]]:
        comparison = self.comparison
        return {
            "lead": lambda: lead(comparison),
            "environment": lambda: environment(comparison),
            "headline": lambda: headline(comparison),
            "moving": lambda: moving(comparison),
            "targets": lambda: targets(comparison),
            "broker": lambda: by_client(comparison, FIGURES["broker"]),
            "memory": lambda: by_client(comparison, FIGURES["rss"]),
            "stalls": lambda: lateness(comparison),
            "works": lambda: works(comparison),
            "curves": lambda: curves(self.along),
            "lines": lambda: lines(self.far),
            "fleet-requests": lambda: self.budget().requests(),
            "fleet-connections": lambda: self.budget().connections(),
            "fleet-metadata": lambda: self.budget().metadata(),
            "fleet-services": lambda: self.budget().services(),
            "fleet-limits": lambda: self.budget().limits(),
            "trouble": cast(services.Report, self.alone["services"]).trouble,
            **{
                SECTIONS.get(name, name): partial(alone, found, virtual=name in VIRTUAL)
                for name, found in self.alone.items()
            },
        }

    def budget(self) -> Budget:
        """What a fleet needs."""
        costs = cast(broker_costs.Report, self.alone["broker-costs"])
        return fleet_budget(self.comparison, costs, cast(fleet.Report, self.alone["fleet"]))

    def written(self, text: str) -> str:
        """``text`` with these figures in the places of those that it has."""
        made = self.sections()
        return SECTION.sub(lambda found: "\n".join([f"{found[1]} -->", *made[found[1]](), ""]), text)

    def plots(self) -> dict[Path, str]:
        drawn = {"comparison": self.comparison.svg(), "curves": self.along.svg(), "lines": self.far.svg()}
        drawn |= {name: cast(Plotted, self.alone[name]).plot() for name in PLOTTED}
        return {ROOT / "docs" / f"{name}.svg": svg for name, svg in drawn.items()}


def main() -> None:
    measured = Measured.read()
    for page in PAGES:
        page.write_text(measured.written(page.read_text(encoding="utf-8")), encoding="utf-8")
    for file, drawn in measured.plots().items():
        file.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
