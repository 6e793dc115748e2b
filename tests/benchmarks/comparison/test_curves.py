"""Curves: how growth is reported, and that each point differs in one thing."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

import pytest

from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.commands import parse_curves
from benchmarks.comparison.curves import Curves, exponent
from benchmarks.comparison.report import Report
from benchmarks.harness.environment import Environment
from benchmarks.works.curve_works import AXES, Axis
from benchmarks.works.run import Description, Measurement

ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "uvloop", "a broker", minutes=1.0)


def curves(axis: Axis, cost: dict[str, list[float]]) -> Curves:
    """CPU microseconds a record, by client and point; None of a client that has none."""
    works = [work for _, work in axis.points]
    cases = [
        Case(work, [Done(client, 1, Measurement(1000, 1.0, of[number] / 1000, 1)) for client, of in cost.items()])
        for number, work in enumerate(works)
    ]
    clients = [Description(client, "1.0", [work.name for work in works], True) for client in cost]
    return Curves(Report(ENVIRONMENT, clients, cases, 1), [axis])


def test_exponent() -> None:
    assert exponent([(1, 5.0), (10, 5.0), (100, 5.0)]) == pytest.approx(0.0)
    assert exponent([(1, 5.0), (10, 50.0), (100, 500.0)]) == pytest.approx(1.0)
    assert exponent([(1, 3.0), (4, 6.0)]) == pytest.approx(0.5)
    assert exponent([(1, 3.0)]) is None


def test_growth_of_each_client() -> None:
    found = curves(AXES["topics"], {"ours": [1.0, 1.0, 1.0, 1.0], "theirs": [1.0, 10.0, 100.0, 1000.0]})
    assert found.growth(AXES["topics"], "ours") == pytest.approx(0.0)
    assert found.growth(AXES["topics"], "theirs") == pytest.approx(1.0)
    text = found.markdown()
    assert "| 1,000 | 1,000 | 1.00 | 1,000 | 1000.00 | 1.00 | 0.00 |" in text.replace("1,000.00", "1000.00")
    assert "| CPU grows as n to the |  | 0.00 |  | 1.00 |  |  |" in text


def test_plot_has_a_line_for_each_client_along_axes_of_numbers() -> None:
    cost = {"ours": [1.0, 1.0, 2.0, 3.0], "theirs": [2.0, 2.0, 2.0, 2.0]}
    drawn = ElementTree.fromstring(curves(AXES["topics"], cost).svg())
    svg = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f".//{svg}polyline")) == 2
    assert {"ours", "theirs", "topics"} <= {text.text for text in drawn.iter(f"{svg}text")}
    codecs = curves(AXES["compression"], {"ours": [1.0, 2.0, 3.0, 4.0, 5.0]})
    assert not ElementTree.fromstring(codecs.svg()).findall(f".//{svg}polyline")


def test_codecs_have_no_growth() -> None:
    found = curves(AXES["compression"], {"ours": [1.0, 2.0, 3.0, 4.0, 5.0]})
    assert found.growth(AXES["compression"], "ours") is None
    assert "grows" not in found.markdown()


@pytest.mark.parametrize("axis", AXES.values(), ids=lambda axis: axis.name)
def test_along_an_axis_one_thing_changes(axis: Axis) -> None:
    changing = {"record-size": "record_size", "senders": "tasks"}.get(axis.name, axis.name)
    for where, work in axis.points:
        assert getattr(work, changing) == where
    same = [{**dataclasses.asdict(work), changing: 0, "name": "", "title": "", "records": 0} for _, work in axis.points]
    assert all(values == same[0] for values in same)


def test_ranges() -> None:
    ends = {name: (axis.points[0][0], axis.points[-1][0]) for name, axis in AXES.items() if name != "compression"}
    assert ends == {
        "record-size": (10, 950_000),
        "partitions": (1, 9_999),
        "topics": (1, 1_000),
        "senders": (1, 10_000),
    }


def test_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse_curves(["--axes", "topics,senders"])
    assert (options.axes, options.rounds) == (["topics", "senders"], 3)
    assert parse_curves(["--quick"]).rounds == 1
    with pytest.raises(SystemExit) as exit_:
        parse_curves(["--axes", "pigeons"])
    assert exit_.value.code == 2
    assert "'pigeons' is none of record-size" in capsys.readouterr().err
