"""The pages of docs/ say what was measured."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks.attacks import attacks
from benchmarks.broker import broker, connections
from benchmarks.broker.start import Start
from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.curves import Curves
from benchmarks.comparison.report import Report
from benchmarks.fleet import fleet
from benchmarks.harness.environment import Environment
from benchmarks.outbox import outbox
from benchmarks.outbox.relaying import RELAY
from benchmarks.pipelining import linger
from benchmarks.record_costs import encode, schemas
from benchmarks.services import services, units
from benchmarks.services.clients import CLIENTS
from benchmarks.services.speed import Run, Speed
from benchmarks.services.trouble import Trouble
from benchmarks.services.unit_clients import UNITS
from benchmarks.spark import audit, spark
from benchmarks.spark.spark_process import SINKS
from benchmarks.stress import imports
from benchmarks.works.curve_works import AXES
from benchmarks.works.run import Description, Measurement
from benchmarks.works.works import WORKS
from tests.benchmarks.comparison.reports import some_lines
from tests.benchmarks.environments import ENVIRONMENT
from tests.benchmarks.fleet.points import point

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("performance_script", ROOT / "scripts" / "performance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_report(environment: Environment = ENVIRONMENT) -> Report:
    def done(client: str, number: int, seconds: float) -> Done:
        return Done(client, number, Measurement(1000, seconds, 0.001, 2**20, stall={"p99.9": 0.004, "max": 0.006}))

    names = ["aioproducer", "aioproducer-unread", "confluent-kafka"]
    runs = [
        done(name, number, seconds) for number in (1, 2) for name, seconds in zip(names, (0.5, 0.4, 1.0), strict=True)
    ]
    clients = [Description(name, "1", ["stream-100"], True) for name in names]
    return Report(environment, clients, [Case(WORKS["stream-100"], runs)], 2)


def the_curves() -> Curves:
    axis = AXES["topics"]
    cases = [Case(work, [Done("aioproducer", 1, Measurement(1000, 0.5, 0.2, 2**20))]) for _, work in axis.points]
    client = Description("aioproducer", "1", [case.work.name for case in cases])
    return Curves(Report(ENVIRONMENT, [client], cases, 1), [axis])


def measured(script: ModuleType) -> Any:
    rates = [broker.Rate("embedded", 1, 95_000.0), broker.Rate("mock", 1, 100_000.0)]
    latencies, starts = [broker.Latency(1, 0.5, 1.5, 9.0)], [Start(1, 0.31, 46.0)]
    embedded = broker.Report(ENVIRONMENT, 10, 100, 1000, rates, latencies, starts)
    quiet = {"p50": 0.5, "p99": 1.0}
    connected = connections.Report(ENVIRONMENT, 1, [quiet], [quiet], [quiet], [1536], [connections.Storm(1000, 990)])
    encoded = encode.Report(ENVIRONMENT, 16384, 1, [encode.Run("a table, 100 B", 1, 50.0, 110.0)])
    runs = [schemas.Run(schemas.AVRO, way, 1, us) for way, us in ((schemas.LIBRARY, 1.5), (schemas.OURS, 1.75))]
    serialized = schemas.Report(ENVIRONMENT, 1000, 1, runs)
    work = linger.Work("1 task", 0)
    awaited = linger.Report(
        ENVIRONMENT, [work], 1, 1.5, [linger.Run(work, it, 1, 9000.0, 0.1, 7.0) for it in linger.SETTINGS]
    )
    sunk = spark.Report(ENVIRONMENT, 1, [spark.Written(sink, 1000, 100, 2, 2.0, 1.0, 1000) for sink in SINKS])
    audited = audit.Report(ENVIRONMENT, "2g", [audit.Audited(1000, 4.0, 5.0, 3 << 20, True)])
    turns = [Run(1, "default", client, 1, 10, 450.0, 2.0, 9.0, 300.0, []) for client in CLIENTS]
    served = services.Report(ENVIRONMENT, Speed(200, 5, turns), None, [Trouble("a service", 10, {"201": 5}, 5, 1.5)])
    attack = attacks.Attacked("storm", "a storm", quiet, {"p50": 0.5, "p99": 2.0, "max": 3.0}, 400, 100.0)
    in_units = units.Report(
        ENVIRONMENT, 10, 5, [units.Turn(dataclasses.replace(turns[0], client=UNITS), None, 4.0, 9.0)]
    )
    relayed = outbox.Report(ENVIRONMENT, 1000, 500, 10, 100, [outbox.Turn(RELAY, 1, 90_000.0, 5.0, 20.0, 5000, 0)])
    return script.Measured(
        *(a_report(), the_curves(), some_lines(), encoded, serialized, awaited, sunk, audited, served),
        *(embedded, connected, attacks.Report(ENVIRONMENT, 4, [attack]), in_units, relayed),
        fleet.Report(ENVIRONMENT, [point()]),
        imports.Report(ENVIRONMENT, 1, [imports.Run("aioproducer", 1, 50.0, 10.0, 400)]),
    )


def test_the_pages_say_what_was_measured(script: ModuleType) -> None:
    for page in script.PAGES:
        text = page.read_text(encoding="utf-8")
        assert script.Measured.read().written(text) == text, "run: PYTHONPATH=. python scripts/performance.py"


def test_the_plots_show_what_was_measured(script: ModuleType) -> None:
    for file, drawn in script.Measured.read().plots().items():
        assert file.read_text(encoding="utf-8") == drawn, file


def test_every_section_is_on_a_page_once(script: ModuleType) -> None:
    texts = [page.read_text(encoding="utf-8") for page in script.PAGES]
    found = [section[1] for text in texts for section in script.SECTION.finditer(text)]
    assert sorted(found) == sorted(measured(script).sections())


def test_only_what_is_between_the_marks_is_written(script: ModuleType) -> None:
    page = "before\n<!-- figures: headline -->\nold\n<!-- end of figures -->\nafter\n"
    written = measured(script).written(page)
    assert written.startswith("before\n<!-- figures: headline -->\n| work |")
    assert written.endswith(" |\n<!-- end of figures -->\nafter\n")
    assert "| stream-100 | aioproducer-unread | 2,500 | 1.00 | 2.50 |" in written
    assert "old" not in written
    assert measured(script).written(written) == written


def test_the_readme_compares_read_deliveries(script: ModuleType) -> None:
    assert script.lead(a_report())[2].startswith("| 100 B, an awaitable or callback for each record | ")


def test_figures_of_a_busy_machine_are_provisional(script: ModuleType) -> None:
    assert not any("Provisional" in line for line in script.environment(a_report()))
    for others in (0.5, None):
        busy = a_report(dataclasses.replace(ENVIRONMENT, others=others))
        assert any("Provisional" in line for line in script.environment(busy))


def test_figures_by_client(script: ModuleType) -> None:
    assert "| stream-100 | 1 | 1 | 1 |" in script.by_client(a_report(), script.FIGURES["rss"])
    assert "| stream-100 | 4.0 | 4.0 |" in script.stalls(a_report())
    assert "| stream-100 | 6.0 | 6.0 |" in script.stalls(a_report())


def test_sections_of_single_commands_are_made_from_their_figures(script: ModuleType) -> None:
    made = measured(script).sections()
    assert "| a table, 100 B | 50 | 20.0 | 2,200 |" in made["encode"]()
    assert "#### one partition" in made["lines"]()
    assert "| 50 ms | 40.0 | 10.0 | 120 |" in made["lines"]()
    assert "| Avro, a dict | 1.50 | 1.75 (+0.25) |  |" in made["schemas"]()
    assert "| 1 task | none | 9,000, 0.10, 7.00 | 9,000, 0.10, 7.00 | 9,000, 0.10, 7.00 |" in made["linger"]()
    assert f"| {next(iter(SINKS))} | 500 | 1.00 | 1.00 | 1000.00 |" in made["spark"]()
    assert "| 1,000 | 4 | 250 | 5 | 3 | yes |" in made["audit"]()
    assert "| 1 | default | aiokafka | 450 | 2 ms | 9 ms | 300 µs | 1.00 (1.00–1.00) |" in made["services"]()
    assert "| a service | 10 | 201: 5 | 5 | 1.50 s | kept |" in made["trouble"]()
    assert "| `from aioproducer import KafkaProducer` | 50 ms | 10.0 MiB | 400 |" in made["imports"]()
    assert "10 brokers, 1,000 of 10,000 partitions in use, 100 records a second." in made["fleet"]()[7]


def test_sections_of_the_embedded_broker_are_made_from_its_figures(script: ModuleType) -> None:
    made = measured(script).sections()
    assert "| start of `aioproducer broker` < 0.5 s | 0.31 (0.31–0.31) s | met |" in made["embedded"]()
    text = made["connections"]()
    assert "| 2,000 idle connections, 1.5 KiB of the broker each | 0.50 ms | 1.00 ms | 1.00 |" in text
    assert "| p99 beside a storm ÷ quiet ≤ 1.5 | 1.00 | met |" in text
    assert "| a storm | 1.0 | 0.5 | 2.0 | 3 | 100 |" in made["attacks"]()


def test_sections_of_units_and_the_outbox_are_made_from_their_figures(script: ModuleType) -> None:
    made = measured(script).sections()
    assert "| units | full | 450 | 2.0 ms | 9.0 ms | 300 µs | 4.0 ms | 9 |" in made["units"]()
    assert "| relay | 90,000 | 5.0 ms | 20.0 ms | 0 of 5,000 |" in made["outbox"]()
