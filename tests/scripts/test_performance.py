"""docs/performance.md says what was measured."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.case import Case, Done
from benchmarks.curve_works import AXES
from benchmarks.curves import Curves
from benchmarks.environment import Environment
from benchmarks.report import Report
from benchmarks.run import Description, Measurement
from benchmarks.works import WORKS

ROOT = Path(__file__).parents[2]
ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "uvloop", "a broker", 0.01, 1.0)


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


def test_the_page_says_what_was_measured(script: ModuleType) -> None:
    text = script.TARGET.read_text(encoding="utf-8")
    assert script.written(text, *script.measured()) == text, "run: PYTHONPATH=. python scripts/performance.py"


def test_the_plots_show_what_was_measured(script: ModuleType) -> None:
    for file, drawn in script.plots(*script.measured()).items():
        assert file.read_text(encoding="utf-8") == drawn, file


def test_every_section_is_on_the_page_once(script: ModuleType) -> None:
    found = [section[1] for section in script.SECTION.finditer(script.TARGET.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(script.sections(a_report(), the_curves()))


def test_only_what_is_between_the_marks_is_written(script: ModuleType) -> None:
    page = "before\n<!-- figures: headline -->\nold\n<!-- end of figures -->\nafter\n"
    written = script.written(page, a_report(), the_curves())
    assert written.startswith("before\n<!-- figures: headline -->\n| work |")
    assert written.endswith(" |\n<!-- end of figures -->\nafter\n")
    assert "| stream-100 | aioproducer-unread | 2,500 | 1.00 | 2.50 |" in written
    assert "old" not in written
    assert script.written(written, a_report(), the_curves()) == written


def test_what_a_busy_machine_tells_is_provisional(script: ModuleType) -> None:
    assert not any("Provisional" in line for line in script.environment(a_report()))
    for others in (0.5, None):
        busy = a_report(dataclasses.replace(ENVIRONMENT, others=others))
        assert any("Provisional" in line for line in script.environment(busy))


def test_figures_by_client(script: ModuleType) -> None:
    assert "| stream-100 | 1 | 1 | 1 |" in script.by_client(a_report(), script.FIGURES["rss"])
    assert "| stream-100 | 4.0 | 4.0 |" in script.stalls(a_report())
    assert "| stream-100 | 6.0 | 6.0 |" in script.stalls(a_report())
