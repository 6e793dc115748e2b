"""The report of how a cost grows."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.curves import Curves, exponent
from benchmarks.comparison.report import Report
from benchmarks.works.curve_works import AXES, Axis
from benchmarks.works.run import Description, Measurement
from tests.benchmarks.environments import ENVIRONMENT


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
