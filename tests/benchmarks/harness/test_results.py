"""Figures in a file: whole at every moment, and enough to make all tables anew."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.broker import broker, connections
from benchmarks.broker.start import Start
from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.commands import keep, load
from benchmarks.comparison.curves import Curves
from benchmarks.comparison.report import Report
from benchmarks.harness import command, results
from benchmarks.harness.environment import Environment
from benchmarks.record_costs import encode, schemas
from benchmarks.services import services
from benchmarks.services.speed import Run, Speed
from benchmarks.services.trouble import Trouble
from benchmarks.spark import audit, spark
from benchmarks.works.curve_works import AXES
from benchmarks.works.run import Description, Measurement
from benchmarks.works.works import WORKS

ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "uvloop", "a broker", 0.01, 1.0)


def a_report() -> Report:
    done = [
        Done("ours", 1, Measurement(1000, 0.123456789, 0.1, 2**20, {}, {"p50": 0.1, "p99": 1, "p99.9": 1, "max": 2})),
        Done("theirs", 1, Measurement(1000, 0.5, 0.2, 2**20), "1 of 1,000 records are not in the log"),
        Done("theirs", 2, None, "it broke"),
    ]
    clients = [Description("ours", "1", ["stream-100"], True), Description("gone", missing="not there")]
    return Report(ENVIRONMENT, clients, [Case(WORKS["stream-100"], done), Case(WORKS["paced"], [], ["no pace"])], 2)


def the_curves() -> Curves:
    axis = AXES["topics"]
    done = [Done("ours", 1, Measurement(1000, 0.5, 0.2, 2**20))]
    cases = [Case(work, done) for _, work in axis.points]
    return Curves(Report(ENVIRONMENT, [Description("ours", "1", [case.work.name for case in cases])], cases, 1), [axis])


@pytest.mark.parametrize("shown", [a_report(), the_curves()], ids=["comparison", "curves"])
def test_the_tables_can_be_made_anew_from_the_file(shown: Report | Curves, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    keep(shown, file)
    again = load(file)
    assert type(again) is type(shown)
    assert again.markdown() == shown.markdown()
    assert again.problems() == shown.problems()
    assert results.read(file) == again.json()


ALONE = [
    audit.Report(ENVIRONMENT, "2g", [audit.Audited(1000, 4.0, 5.0, 3 << 20, True)]),
    broker.Report(
        ENVIRONMENT,
        10,
        100,
        1000,
        [broker.Rate("mock", 1, 1.5)],
        [broker.Latency(1, 0.5, 1.5, 9.0)],
        [Start(1, 0.3, None)],
    ),
    connections.Report(ENVIRONMENT, 1, [{"p50": 0.5}], [], [{"p99": 1.0}], [1536], [connections.Storm(1000, 990)]),
    encode.Report(ENVIRONMENT, 16384, 1, [encode.Run("a list", 1, 80.5, 109.0)]),
    schemas.Report(ENVIRONMENT, 1000, 1, [schemas.Run("Avro, a dict", "library alone", 1, 1.5)]),
    services.Report(
        ENVIRONMENT,
        Speed(200, 5, [Run(1, "default", "aiokafka", 1, 10, 450.0, 2.0, 9.0, 300.0, ["one"])]),
        troubles=[Trouble("a service", 10, {"201": 5}, 5, 1.5)],
    ),
    spark.Report(ENVIRONMENT, 1, [spark.Written("aioproducer", 1000, 100, 2, 2.5, 4.5, 1000)]),
]


@pytest.mark.parametrize("made", ALONE, ids=lambda made: type(made).__module__)
def test_a_report_of_one_command_is_the_same_when_it_is_read(made: command.Report, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    results.write(file, dataclasses.asdict(made))
    assert results.read_as(type(made), file) == made


def test_each_run_is_a_line_and_no_file_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    keep(a_report(), file)
    report = a_report()
    report.cases[0].done.extend(Done("ours", number, Measurement(1000, 1 / 7, 0.1, 2**20)) for number in range(2, 30))
    keep(report, file)
    lines = [line.strip().rstrip(",") for line in file.read_text().splitlines()]
    runs = [json.loads(line) for line in lines if line.startswith('{"client":')]
    assert [run["round"] for run in runs] == [1, 1, 2, *range(2, 30)]
    assert runs[-1]["measurement"]["seconds"] == 0.142857
    assert list(tmp_path.iterdir()) == [file]


def test_without_a_file_nothing_is_kept() -> None:
    keep(a_report(), None)


def test_a_plot_is_drawn_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(the_curves(), tmp_path / "curves.json")
    plot = tmp_path / "curves.svg"
    monkeypatch.setattr(sys, "argv", ["benchmarks", "report", str(tmp_path / "curves.json"), "--plot", str(plot)])
    assert main() == 0
    assert plot.read_text() == the_curves().svg()
    assert capsys.readouterr().out == the_curves().markdown()


@pytest.mark.parametrize("text", ["", "{}", '{"axes": ["topics"]}', '{"environment": {}}', "[]"])
def test_another_file_is_refused_by_name(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "report", str(file)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert f"{file} has no figures" in capsys.readouterr().err
