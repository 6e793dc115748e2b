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
from benchmarks.pipelining import in_flight, linger, pipeline, window
from benchmarks.pipelining.pipeline_run import AUTO, PACED, Figures, Line
from benchmarks.record_costs import encode, observability, schemas
from benchmarks.services import services, units
from benchmarks.services.clients import CLIENTS
from benchmarks.services.speed import Run, Speed
from benchmarks.services.trouble import Trouble
from benchmarks.services.unit_clients import UNITS
from benchmarks.spark import audit, spark
from benchmarks.spark.spark_process import SINKS
from benchmarks.stress import back_pressure, imports, memory, outage, scale, stalls, threads
from benchmarks.works.curve_works import AXES
from benchmarks.works.run import Description, Measurement
from benchmarks.works.works import WORKS
from tests.benchmarks.comparison.reports import some_lines
from tests.benchmarks.environments import ENVIRONMENT
from tests.benchmarks.fleet.points import point
from tests.benchmarks.record_costs.broker_cost_reports import costs_report

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


def those_of_the_broker() -> dict[str, Any]:
    rates = [broker.Rate("embedded", 1, 95_000.0), broker.Rate("mock", 1, 100_000.0)]
    latencies, starts = [broker.Latency(1, 0.5, 1.5, 9.0)], [Start(1, 0.31, 46.0)]
    quiet = {"p50": 0.5, "p99": 1.0}
    storms = [connections.Storm(1000, 990)]
    attack = attacks.Attacked("storm", "a storm", quiet, {"p50": 0.5, "p99": 2.0, "max": 3.0}, 400, 100.0)
    return {
        "attacks": attacks.Report(ENVIRONMENT, 4, [attack]),
        "broker": broker.Report(ENVIRONMENT, 10, 100, 1000, rates, latencies, starts),
        "connections": connections.Report(ENVIRONMENT, 1, [quiet], [quiet], [quiet], [1536], storms),
    }


def those_of_records() -> dict[str, Any]:
    runs = [schemas.Run(schemas.AVRO, way, 1, us) for way, us in ((schemas.LIBRARY, 1.5), (schemas.OURS, 1.75))]
    watched = [observability.Run(way, 1, 700.0 + 10 * number) for number, way in enumerate(observability.WAYS)]
    return {
        "broker-costs": costs_report(),
        "encode": encode.Report(ENVIRONMENT, 16384, 1, [encode.Run("a table, 100 B", 1, 50.0, 110.0)]),
        "observability": observability.Report(ENVIRONMENT, 1000, watched, [1.5]),
        "schemas": schemas.Report(ENVIRONMENT, 1000, 1, runs),
    }


def those_of_lines() -> dict[str, Any]:
    work = linger.Work("1 task", 0)
    awaited = [linger.Run(work, it, 1, 9000.0, 0.1, 7.0) for it in linger.SETTINGS]
    line = Line(PACED, 20, 5)
    paced = [Figures(line, setting, 1, 999.0, 20.0, 900.0, 22.5, 26.0) for setting in ("5", AUTO)]
    piped = pipeline.Report(dataclasses.replace(ENVIRONMENT, others=0.9), [line], ["5", AUTO], 1, 2.0, paced)
    flown = [in_flight.Run(number, 1, 1000, 50_000.0 + number, 2.5, 9.0) for number in in_flight.KIP_RECORDS_PER_S]
    return {
        "in-flight": in_flight.Report(ENVIRONMENT, 1000, 1, flown),
        "linger": linger.Report(ENVIRONMENT, [work], 1, 1.5, awaited),
        "pipeline": piped,
        "pipeline-partitions": piped,
        "pipeline-sockets": piped,
        "window": window.Report(ENVIRONMENT, [5], 150.0, 1, [window.Rate(5, 1, 150.0, 150.5, 200, 33.0)]),
    }


def those_under_stress() -> dict[str, Any]:
    down = outage.Outage("silent", 60.0, 12_000, 0.01, ["WARNING gone"], 150.0, 2000.0)
    flat = [scale.Figures(load.name, 10, 1, 3.5, 2.0) for load in scale.LOADS]
    return {
        "back-pressure": back_pressure.Report(
            ENVIRONMENT, [back_pressure.Figures("many", 10, {"RecordMetadata": 10}, 40.0, 60.0, 1.5)]
        ),
        "stalls": stalls.Report(ENVIRONMENT, 1, [stalls.Figures("expiry", 700, 1, 1.0, 2.0, 3.0, "a callback")]),
        "imports": imports.Report(ENVIRONMENT, 1, [imports.Run("aioproducer", 1, 50.0, 10.0, 400)]),
        "memory": memory.Report(
            ENVIRONMENT,
            9,
            32,
            [memory.Cost("BATCH_COST", 1500, 1536)],
            [memory.Run(10, "send", memory.Held(memory.MIB, 2 * memory.MIB, 3, 0))],
        ),
        "outage": outage.Report(ENVIRONMENT, [down], [outage.Gone(30_000, 2000, 12.0, 5.0, 0.01, [])]),
        "scale": scale.Report(ENVIRONMENT, [10], 1, flat, [scale.Refresh(10, 1, 0.5, 1.0)]),
        "threads": threads.Report(ENVIRONMENT, [1], 1, False, True, [threads.Run(1, 1, 1_400_000.0, 0.95)]),
    }


def those_of_whole_programs() -> dict[str, Any]:
    turns = [Run(1, "default", client, 1, 10, 450.0, 2.0, 9.0, 300.0, []) for client in CLIENTS]
    turn = units.Turn(dataclasses.replace(turns[0], client=UNITS), None, 4.0, 9.0)
    written = [spark.Written(sink, 1000, 100, 2, 2.0, 1.0, 1000) for sink in SINKS]
    relayed = [outbox.Turn(RELAY, 1, 90_000.0, 5.0, 20.0, 5000, 0)]
    return {
        "audit": audit.Report(ENVIRONMENT, "2g", [audit.Audited(1000, 4.0, 5.0, 3 << 20, True)]),
        "fleet": fleet.Report(ENVIRONMENT, [point()]),
        "outbox": outbox.Report(ENVIRONMENT, 1000, 500, 10, 100, relayed),
        "services": services.Report(
            ENVIRONMENT, Speed(200, 5, turns), None, [Trouble("a service", 10, {"201": 5}, 5, 1.5)]
        ),
        "spark": spark.Report(ENVIRONMENT, 1, written),
        "units": units.Report(ENVIRONMENT, 10, 5, [turn]),
    }


def measured(script: ModuleType) -> Any:
    alone = {
        **those_of_the_broker(),
        **those_of_records(),
        **those_of_lines(),
        **those_under_stress(),
        **those_of_whole_programs(),
    }
    return script.Measured(a_report(), the_curves(), some_lines(), alone)


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


def test_each_step_of_moving_over_is_beside_aiokafka(script: ModuleType) -> None:
    def done(client: str, seconds: float, cpu: float) -> Done:
        return Done(client, 1, Measurement(1000, seconds, cpu, 2**20))

    both = [done("aiokafka", 1.0, 0.9), done("aioproducer", 0.1, 0.1)]
    case = Case(WORKS["stream-100"], both)
    made = script.moving(dataclasses.replace(a_report(), cases=[case]))
    assert f"| {WORKS['stream-100'].title} | – | 10.00 (9.00) |" in made
    case = Case(WORKS["stream-100"], [*both, done("aioproducer-compat", 0.5, 0.3)])
    made = script.moving(dataclasses.replace(a_report(), cases=[case]))
    assert f"| {WORKS['stream-100'].title} | 2.00 (3.00) | 10.00 (9.00) |" in made


def test_figures_of_a_busy_machine_are_provisional(script: ModuleType) -> None:
    assert not any("Provisional" in line for line in script.environment(a_report()))
    for others in (0.5, None):
        busy = a_report(dataclasses.replace(ENVIRONMENT, others=others))
        assert any("Provisional" in line for line in script.environment(busy))


def test_figures_by_client(script: ModuleType) -> None:
    assert "| stream-100 | 1 | 1 | 1 |" in script.by_client(a_report(), script.FIGURES["rss"])
    assert "| stream-100 | 4.0 | 4.0 |" in script.lateness(a_report())
    assert "| stream-100 | 6.0 | 6.0 |" in script.lateness(a_report())


def test_sections_of_single_commands_are_made_from_their_figures(script: ModuleType) -> None:
    made = measured(script).sections()
    assert "| a table, 100 B | 50 | 20.0 | 2,200 |" in made["encode"]()
    assert "#### one partition" in made["lines"]()
    assert "| 50 ms | 40.0 | 10.0 | 120 |" in made["lines"]()
    assert "| 1 batch of 1 record | 80 | 80 | 1.00 |" in made["broker-costs"]()
    assert "| Avro, a dict | 1.50 | 1.75 (+0.25) |  |" in made["schemas"]()
    assert "| 1 task | none | 9,000, 0.10, 7.00 | 9,000, 0.10, 7.00 | 9,000, 0.10, 7.00 |" in made["linger"]()
    assert f"| {next(iter(SINKS))} | 500 | 1.00 | 1.00 | 1000.00 |" in made["spark"]()
    assert "| 1,000 | 4 | 250 | 5 | 3 | yes |" in made["audit"]()
    assert "| 1 | default | aiokafka | 450 | 2 ms | 9 ms | 300 µs | 1.00 (1.00–1.00) |" in made["services"]()
    assert "| a service | 10 | 201: 5 | 5 | 1.50 s | kept |" in made["trouble"]()
    assert "| `expiry` | 700 | partitions whose batches expire at once | 1.0 | 2.0 | 3.0 | met |" in made["storms"]()
    assert "| `from aioproducer import KafkaProducer` | 50 ms | 10.0 MiB | 400 |" in made["imports"]()
    assert "10 brokers, 1,000 of 10,000 partitions in use, 100 records a second." in made["fleet"]()[7]


def test_what_a_fleet_needs_is_computed_from_what_was_measured(script: ModuleType) -> None:
    def case(work: str, cpu: float) -> Case:
        return Case(WORKS[work], [Done("aioproducer", 1, Measurement(1_000_000, 0.5, cpu, 40 << 20))])

    made = measured(script)
    made = made._replace(
        comparison=dataclasses.replace(a_report(), cases=[case("single", 70.0), case("stream-100", 0.5)])
    )
    assert made.budget().client == (70.0, 0.5, 2_000_000.0, 40.0)
    assert made.budget().broker == pytest.approx((60.0, 20.0, 0.1))
    assert any("| 100,000 | 100,000 | 9 |" in line for line in made.sections()["fleet-requests"]())


def test_a_fleet_needs_both_works(script: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"comparison\.json has no cpu of aioproducer in single"):
        measured(script).budget()


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


def test_sections_of_the_lines_are_made_from_their_figures(script: ModuleType) -> None:
    made = measured(script).sections()
    assert "| 5 | 150.5 ms | 33.00 | 33.33 | 99.0% |  |" in made["window"]()
    assert "| 20 ms | 5 | 22.5 / 26.0 (20 × 900) | 22.5 / 26.0 (20 × 900) |" in made["pipeline-sockets"]()
    assert "| 5 | 50,005 | 2.5 ms | 9.0 ms | 1.00 (1.00–1.00) | 1.44 |" in made["in-flight"]()


def test_sections_of_stress_are_made_from_their_figures(script: ModuleType) -> None:
    made = measured(script).sections()
    assert "| `many` | 10 | 1,000 B, `buffer.memory` of 32 MiB | 40 | 60 | 2,097,152 | 1.5 |" in made["back-pressure"]()
    assert "| 10 B | `send`, not awaited | 3 | 1.0 | 2.0 |" in made["held"]()
    assert "| silent (SIGSTOP, SIGCONT) | 60 | 12,000 | 1.0% | 1 | 150 ms | once, in order, where told |" in (
        made["outage"]()
    )
    assert any(line.startswith("| 10 | 3.50 (2 ms) | ") for line in made["scale"]())
    assert "| 1 | 1,400,000 | 1.00 (1.00–1.00) | 0.95 | 0.68 |" in made["threads"]()
    assert "| Prometheus | 710 | 10 (10–10) |" in made["observability"]()


def test_a_busy_machine_does_not_matter_in_virtual_time(script: ModuleType) -> None:
    made = measured(script).sections()
    assert any("Provisional" in line for line in made["pipeline-sockets"]())
    for name in script.VIRTUAL:
        assert not any("Provisional" in line or "Busy" in line for line in made[name]())
