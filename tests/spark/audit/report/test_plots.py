"""The data of plots, as ``report.js`` finds them in the page."""

from __future__ import annotations

import json
import re
from typing import Any

from aioproducer.spark.audit.report.plots import Bars, TimeLines


def data(plot: TimeLines | Bars) -> Any:
    text = "".join(plot.html())
    (found,) = re.findall('<script type="application/json">(.*?)</script>', text)
    return json.loads(found)


def test_lines_have_the_times_of_all_in_seconds() -> None:
    plot = data(TimeLines("t", "ms", [("p50", [(2000, 5), (1000, 4)]), ("p99", [(3000, 9)])]))
    assert (plot["kind"], plot["unit"], plot["series"]) == ("lines", "ms", ["p50", "p99"])
    assert plot["data"] == [[1, 2, 3], [4, 5, None], [None, None, 9]]


def test_bars_rise() -> None:
    plot = data(Bars("t", "partition", "records", [(10, 1.5), (2, 7)]))
    assert (plot["kind"], plot["x"], plot["series"]) == ("bars", "partition", ["records"])
    assert plot["data"] == [[2, 10], [7, 1.5]]


def test_a_name_cannot_end_the_script_that_carries_it() -> None:
    name = "</script><script>alert(1)</script>"
    plot = Bars(name, name, name, [(0, 1)])
    assert data(plot)["series"] == [name]
    text = "".join(plot.html())
    assert text.count("<script") == 1
    assert "<figcaption>&lt;/script&gt;" in text
