from __future__ import annotations

from xml.etree import ElementTree

from benchmarks.comparison.bars import NAMES, Bars
from benchmarks.harness.statistics import Spread
from benchmarks.harness.svg import WIDTH, svg

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_begin_at_one_and_end_at_the_median() -> None:
    bars = Bars("speed", "ours ÷ it", [("faster", Spread(2.0, 1.0, 4.0)), ("slower", Spread(0.5, 0.5, 0.5))])
    drawn = ElementTree.fromstring(svg(bars))
    _, up, down = drawn.iter(f"{SVG}rect")  # the first is the ground
    begin, width = float(up.attrib["x"]), float(up.attrib["width"])
    # From 0.5 to 4 it is three times twofold, so that each takes as much room.
    assert abs(width - (WIDTH - 24 - NAMES) / 3) < 0.2
    assert abs(float(down.attrib["x"]) + float(down.attrib["width"]) - begin) < 0.2
    assert abs(float(down.attrib["x"]) - NAMES) < 0.2
    assert {"faster", "slower", "2", "0.5", "speed"} <= {text.text for text in drawn.iter(f"{SVG}text")}
