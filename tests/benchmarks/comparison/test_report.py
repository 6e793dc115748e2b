from __future__ import annotations

import dataclasses
import json

import pytest

from benchmarks.comparison.case import Done
from benchmarks.harness.environment import Environment
from tests.benchmarks.comparison.reports import a_report, measured


def test_markdown() -> None:
    text = a_report(measured("ours", 1, 0.001, cpu=0.0005), measured("theirs", 1, 0.002, cpu=0.002)).markdown()
    assert (
        "| client | records/s | CPU µs/record | peak RSS MiB | ours ÷ it: speed | ours ÷ it: cpu | ours ÷ it: rss |"
        in text
    )
    assert "| ours | 1,000,000 | 0.50 | 1 |  |  |  |" in text
    assert "| theirs | 500,000 | 2.00 | 1 | 2.00 (2.00–2.00) | 0.25 (0.25–0.25) | 1.00 (1.00–1.00) |" in text
    assert "- Client: theirs 2.0, not idempotent" in text
    assert "- Left out: gone: No module named 'gone'" in text
    assert "- Load before: 0.50" in text
    assert "Problems" not in text


def test_markdown_names_what_went_wrong() -> None:
    report = a_report(measured("ours", 1, 0.001), Done("theirs", 1, None, "it broke"))
    assert "| theirs | – | – | – | – | – | – |" in report.markdown()
    assert report.problems() == ["stream-100: theirs, round 1: it broke"]
    assert report.problems()[0] in report.markdown()


def test_plot_shows_other_clients_alone() -> None:
    svg = a_report(measured("ours", 1, 1.0), measured("aioproducer-many", 1, 1.0), measured("theirs", 1, 2.0)).svg()
    assert ">theirs<" in svg
    assert "aioproducer-many" not in svg


def test_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "200")
    a_report(measured("ours", 1, 0.001), Done("theirs", 1, None, "it broke")).print_to_terminal()
    shown = capsys.readouterr().out
    assert "1,000,000" in shown
    assert "gone: No module named 'gone'" in shown
    assert "theirs, round 1: it broke" in shown


def test_json_has_every_run() -> None:
    report = json.loads(json.dumps(a_report(measured("ours", 1, 0.5), measured("theirs", 1, 1.0)).json()))
    (case,) = report["cases"]
    assert [(run["client"], run["round"], run["measurement"]["seconds"]) for run in case["runs"]] == [
        ("ours", 1, 0.5),
        ("theirs", 1, 1.0),
    ]
    assert report["rounds"] == 3


def test_interrupted_is_a_problem() -> None:
    report = dataclasses.replace(
        a_report(measured("ours", 1, 0.5)), environment=Environment.now(loop="asyncio", broker="")
    )
    assert report.problems() == ["it was interrupted"]
    assert "it was interrupted" in report.markdown()
