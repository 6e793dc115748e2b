"""The report of what goes over long lines, and such lines before brokers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from xml.etree import ElementTree

import pytest

from benchmarks.clients import WINDOW_20
from benchmarks.comparison import far_brokers
from benchmarks.comparison.broker import Broker, BrokerOf
from benchmarks.comparison.commands import parse_lines
from benchmarks.comparison.comparison import Stage, compare
from benchmarks.comparison.lines import Lines
from benchmarks.works.line_works import LINE_WORKS
from tests.benchmarks.comparison.reports import some_lines
from tests.support.leaks import no_leaks as no_leaks


def test_tables() -> None:
    lines = some_lines().tables()
    assert "### one partition" in lines
    assert "### 6 partitions" in lines
    assert "| round trip | ours | theirs | the line carries |" in lines
    assert "| 50 ms | 40.0 | 10.0 | 120 |" in lines
    assert "| 50 ms | 100 × 256 (5.0) | 10 × 256 (0.5) |" in lines
    assert "| 50 ms | 2.00 | 2.00 |" in lines


def test_what_the_line_may_have_part_in_is_marked() -> None:
    assert "| 50 ms | 80.0\\* | – | 120 |" in some_lines().tables()


def test_a_client_that_failed_is_a_problem_and_has_no_figures() -> None:
    (problem,) = some_lines().problems()
    assert problem == "line-6-50ms: theirs, round 1: no"
    assert f"- {problem}" in some_lines().markdown()
    assert "| 50 ms | 400 × 256 (20.0) | – |" in some_lines().markdown()


def test_the_plot_has_a_line_for_each_client_that_has_figures() -> None:
    drawn = ElementTree.fromstring(some_lines().svg())
    svg = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f".//{svg}polyline")) == 3
    assert "one partition, records of 1,000 B" in {text.text for text in drawn.iter(f"{svg}text")}


async def test_what_a_line_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far_brokers, "MEGABYTES", 3)
    assert await far_brokers.carried(1) > 0


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("no_leaks")
async def test_runs_over_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both brokers are the embedded one here."""

    @contextlib.asynccontextmanager
    async def kafka() -> AsyncIterator[Broker]:
        async with far_brokers.embedded() as broker:
            yield broker

    monkeypatch.setattr(far_brokers, "kafka", kafka)
    clients = ["aioproducer", WINDOW_20]
    options = parse_lines(["--rounds=1", "--clients", ",".join(clients)])
    used: dict[str, str] = {}

    @contextlib.asynccontextmanager
    async def brokers() -> AsyncIterator[BrokerOf]:
        async with far_brokers.far_brokers(clients) as broker_of:
            used.update({client: broker_of(client).bootstrap_servers for client in clients})
            yield broker_of

    stage = Stage("embedded", brokers, lambda work, client: 3000)
    report = await compare(options, [LINE_WORKS["line-1-20ms"]], lambda line: None, stage=stage)
    assert used["aioproducer"] != used[WINDOW_20]
    assert report.problems() == []
    for done in report.cases[0].done:
        assert done.measurement is not None
        assert done.measurement.seconds > 0.02
        assert done.measurement.requests > 0
        assert done.measurement.batch_bytes > 1000
    lines = Lines(report, {20: 1e6})
    assert sum(line.startswith("| 20 ms | ") for line in lines.tables()) == 3


async def test_without_the_client_with_the_larger_window_there_is_one_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.asynccontextmanager
    async def kafka() -> AsyncIterator[Broker]:
        yield Broker("here:1")

    monkeypatch.setattr(far_brokers, "kafka", kafka)
    monkeypatch.delattr(far_brokers, "embedded")
    async with far_brokers.far_brokers(["aioproducer", "java"]) as broker_of:
        assert broker_of("java") is broker_of("aioproducer")
