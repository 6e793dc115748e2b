from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.harness.plot import Chart, Series
from benchmarks.harness.svg import svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*charts: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(svg(*charts))


def points(line: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())]


def chart(*series: Series) -> Chart:
    return Chart("a < b", "across", "up", series)


def test_a_factor_looks_the_same_everywhere() -> None:
    (line,) = drawn(chart(Series("one", [(1, 10), (10, 100), (100, 1000)]))).iter(f"{SVG}polyline")
    (x1, y1), (x2, y2), (x3, y3) = points(line)
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    assert y1 - y2 == pytest.approx(y2 - y3, abs=0.2)
    assert y1 > y3, "more is higher"


def test_every_series_is_named_and_has_its_marks() -> None:
    root = drawn(chart(Series("one", [(1, 1), (2, 2)]), Series("ideal", [(1, 1), (2, 2)], dashed=True)))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"a < b", "across", "up", "one", "ideal", "1", "2"} <= set(texts)
    assert len(list(root.iter(f"{SVG}circle"))) == 2, "what is compared with has none"


def test_charts_stand_side_by_side() -> None:
    one = chart(Series("one", [(1, 1), (2, 2)]))
    assert int(drawn(one, one).attrib["width"]) == 2 * int(drawn(one).attrib["width"])


def test_a_value_without_a_place_on_the_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for 0"):
        svg(chart(Series("one", [(0, 1), (1, 1)])))


def test_a_value_that_never_changes_is_a_level_line() -> None:
    (line,) = drawn(chart(Series("one", [(1, 7), (2, 7)]))).iter(f"{SVG}polyline")
    (_, left), (_, right) = points(line)
    assert left == right
