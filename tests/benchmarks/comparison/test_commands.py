"""The commands that compare clients: their arguments, exit status and files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.clients import CLIENTS, WINDOW_20
from benchmarks.comparison import comparison
from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.commands import keep, load, parse_compare, parse_curves, parse_lines
from benchmarks.comparison.comparison import Kept, Stage
from benchmarks.comparison.curves import Curves
from benchmarks.comparison.lines import Lines
from benchmarks.comparison.report import Report
from benchmarks.harness import results
from benchmarks.works.curve_works import AXES
from benchmarks.works.line_works import LINE_CLIENTS
from benchmarks.works.run import Description, Measurement
from benchmarks.works.works import WORKS
from tests.benchmarks.comparison.reports import a_report, measured, some_lines
from tests.benchmarks.environments import ENVIRONMENT


def test_defaults() -> None:
    options = parse_compare([])
    assert options.rounds == 5
    assert options.clients == [name for name in CLIENTS if name != WINDOW_20]
    assert options.works == list(WORKS)
    assert options.bootstrap_server is None
    assert not options.quick


def test_choices() -> None:
    options = parse_compare(["--clients", "aiokafka,aioproducer", "--works=tasks-100", "--quick"])
    assert options.clients == ["aiokafka", "aioproducer"]
    assert options.works == ["tasks-100"]
    assert options.quick


def test_quick_is_a_part_once() -> None:
    options = parse_compare(["--quick"])
    assert options.rounds == 1
    assert set(options.works) < set(WORKS)
    assert parse_compare(["--quick", "--rounds=3", "--works=lz4"]).rounds == 3


@pytest.mark.parametrize(
    "arguments",
    [["--rounds", "0"], ["--clients", "pigeon"], ["--works", ""], ["--records", "many"]],
)
def test_nonsense_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse_compare(arguments)
    assert exit_.value.code == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize(("problem", "status"), [("", 0), ("it broke", 1)])
def test_exit_status_and_json_file(
    problem: str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def compared(options: object, works: object, progress: object, kept: Kept, stage: Stage) -> Report:
        report = a_report(measured("ours", 1, 0.5, problem=problem))
        kept(report)
        return report

    monkeypatch.setattr(comparison, "compare", compared)
    files = ["--json", str(tmp_path / "figures.json"), "--plot", str(tmp_path / "figures.svg")]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *files])
    assert main() == status
    assert (tmp_path / "figures.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "figures.json").read_text())["rounds"] == 3
    assert capsys.readouterr().out == a_report(measured("ours", 1, 0.5, problem=problem)).markdown()


def test_arguments_of_curves(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse_curves(["--axes", "topics,senders"])
    assert (options.axes, options.rounds) == (["topics", "senders"], 3)
    assert parse_curves(["--quick"]).rounds == 1
    with pytest.raises(SystemExit) as exit_:
        parse_curves(["--axes", "pigeons"])
    assert exit_.value.code == 2
    assert "'pigeons' is none of record-size" in capsys.readouterr().err


def test_arguments_of_lines(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse_lines(["--round-trips-ms", "1,150", "--partitions=6"])
    assert (options.round_trips_ms, options.partitions, options.rounds) == ([1, 150], [6], 3)
    assert options.clients == list(LINE_CLIENTS)
    for nonsense in (["--round-trips-ms=2"], ["--partitions=1,x"], ["--clients=aiokafka"]):
        with pytest.raises(SystemExit) as exit_:
            parse_lines(nonsense)
        assert exit_.value.code == 2
        assert "is none of" in capsys.readouterr().err


def mixed_report() -> Report:
    """One run is right, one is not, one broke; a client and a work are left out."""
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


@pytest.mark.parametrize("shown", [mixed_report(), the_curves(), some_lines()], ids=["comparison", "curves", "lines"])
def test_the_tables_can_be_made_anew_from_the_file(shown: Report | Curves | Lines, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    keep(shown, file)
    again = load(file)
    assert type(again) is type(shown)
    assert again.markdown() == shown.markdown()
    assert again.problems() == shown.problems()
    assert results.read(file) == again.json()


def test_each_run_is_a_line_and_no_file_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    keep(mixed_report(), file)
    report = mixed_report()
    report.cases[0].done.extend(Done("ours", number, Measurement(1000, 1 / 7, 0.1, 2**20)) for number in range(2, 30))
    keep(report, file)
    lines = [line.strip().rstrip(",") for line in file.read_text().splitlines()]
    runs = [json.loads(line) for line in lines if line.startswith('{"client":')]
    assert [run["round"] for run in runs] == [1, 1, 2, *range(2, 30)]
    assert runs[-1]["measurement"]["seconds"] == 0.142857
    assert list(tmp_path.iterdir()) == [file]


def test_without_a_file_nothing_is_kept() -> None:
    keep(mixed_report(), None)


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
