"""The campaign of kills and interruptions: its plan, its report, and a small one on a standalone cluster."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aioproducer.testing.threaded_cluster import ThreadedCluster

from . import report
from .plan import Kind, Mode, Moment, interruptions
from .report import Interrupted, Run

GOOD = Run(
    seed=3,
    date="a day",
    versions="PySpark",
    seconds=90.0,
    interrupted=[
        Interrupted(Kind.DRIVER, Moment.DECIDED, Mode.STREAM, "the driver was killed"),
        Interrupted(Kind.EXECUTOR, Moment.BEGUN, Mode.BATCH, None),
    ],
    attempts=3,
    writes=2,
    rows=480,
    copies=1,
)


def test_each_kind_is_made_and_a_seed_decides_when() -> None:
    plan = interruptions(7, 42)
    assert Counter(one.kind for one in plan) == {**dict.fromkeys(Kind, 6), Kind.DRIVER: 3, Kind.CORES: 3}
    assert plan == interruptions(7, 42) != interruptions(8, 42)
    assert all(one.moment is Moment.BEGUN for one in plan if one.kind in (Kind.UPSTREAM, Kind.SPECULATION))
    assert {one.moment for one in interruptions(7, 400)} == set(Moment)


def test_runs_are_added_to_a_report(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert report.add(path, GOOD) == [GOOD]
    assert report.add(path, replace(GOOD, seed=4)) == report.read(path) == [GOOD, replace(GOOD, seed=4)]
    page = path.with_suffix(".md").read_text()
    assert "Every row was read once, and no query was stuck" in page
    assert "--seed 3 4" in page
    assert "| kills and interruptions | 4 |" in page
    assert "| driver killed | 0 | 0 | 0 | 2 | 0 | 2 |" in page
    assert "| the attempt succeeded | 2 |" in page


@pytest.mark.parametrize("what", ["missing", "twice", "unexpected", "left_open", "stuck"])
def test_a_problem_is_one(what: str) -> None:
    assert GOOD.problems() == []
    problem_of: dict[str, Any] = {what: ["STREAM/0/7"]}
    bad = replace(GOOD, **problem_of)
    (problem,) = bad.problems()
    assert problem.startswith("seed 3: ")
    assert "STREAM/0/7" in problem
    page = report.page([GOOD, bad])
    assert "**There are problems**" in page
    assert f"- {problem}" in page


@pytest.mark.long
@pytest.mark.conformance
def test_a_small_campaign(spark: object, tmp_path: Path) -> None:
    """``spark`` skips this where there is no Spark."""
    from .campaign import Campaign, environment_of
    from .standalone import Standalone

    progress: list[str] = []
    environment = environment_of(tmp_path)
    with ThreadedCluster() as broker, Standalone(tmp_path, environment) as cluster:
        campaign = Campaign(broker.bootstrap_servers, cluster, tmp_path, environment, 2, 2, progress.append)
        run = campaign.write_all(time.monotonic() + 200)
    assert run.problems() == [], progress
    assert run.interrupted
    assert run.rows >= 3 * 240


def test_the_page_in_the_docs_is_that_of_its_figures() -> None:
    path = Path(__file__).parents[3] / "docs" / "campaigns" / "spark.json"
    assert path.with_suffix(".md").read_text(encoding="utf-8") == report.page(report.read(path))
