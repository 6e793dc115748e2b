"""``python -m benchmarks outage``: what it calls a failure. The measuring itself needs real Kafka and minutes."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from aioproducer import wait_all
from aioproducer.broker import EmbeddedCluster
from benchmarks.__main__ import main
from benchmarks.stress import outage
from benchmarks.stress.outage import Gone, LogCounter, Outage, Report, Stream
from tests.benchmarks.environments import ENVIRONMENT
from tests.support.producing import make_producer

GOOD = Outage("refused", 60, 12_000, 0.012, ["WARNING it is gone", "INFO it is back"], 800, 2000)
ENDED = Gone(30_000, 2000, 12.0, 5.0, 0.01, ["ERROR 2000 records were not delivered"])


def test_good_figures_are_no_problem() -> None:
    report = Report(ENVIRONMENT, [GOOD], [ENDED])
    assert report.problems() == []
    refused = (
        "| connections refused (killed, restarted) | 60 | 12,000 | 1.2% | 2 | 800 ms | once, in order, where told |"
    )
    assert refused in report.tables()
    assert "| gone for good | 30,000 | 2,000 | 12 ms | 1.0% | 1 | 5.00 s |" in report.tables()
    assert "    refused: WARNING it is gone" in report.markdown()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"cpu_share": 0.06}, "of a core: it is 6.0%"),
        ({"log_lines": ["x"] * 11}, "lines in the log ≤ 10: it is 11"),
        ({"resumed_ms": 2001.0}, "two back-offs, 2,000 ms: it is 2,001 ms"),
        ({"problems": ["lost: b'1'"]}, "lost: b'1'"),
    ],
)
def test_an_outage_that_is_not(change: dict[str, Any], problem: str) -> None:
    (found,) = Report(ENVIRONMENT, [GOOD, dataclasses.replace(GOOD, **change)], [ENDED]).problems()
    assert problem in found


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"latest_ms": 1001.0}, "delivery.timeout.ms ≤ 1,000 ms: it is 1,001 ms"),
        ({"close_s": 6.1}, "close(timeout=5) ≤ 6 s: it is 6.10 s"),
        ({"log_lines": ["x"] * 11}, "lines in the log ≤ 10: it is 11"),
    ],
)
def test_an_end_that_is_not(change: dict[str, Any], problem: str) -> None:
    (found,) = Report(ENVIRONMENT, [GOOD], [dataclasses.replace(ENDED, **change)]).problems()
    assert problem in found


def test_lines_are_counted_only_while_somebody_listens() -> None:
    counter = LogCounter()
    log = logging.getLogger("aioproducer.net.link_task")
    with counter.listening():
        log.info("one")
        log.debug("not this one")
    log.warning("nor this")
    assert counter.lines == ["INFO one"]


async def test_a_stream_of_records_with_a_key_each() -> None:
    async with EmbeddedCluster() as cluster, make_producer(cluster.bootstrap_servers) as producer:
        stream = Stream(producer, "t")
        async with stream.flowing():
            await asyncio.sleep(0)  # the first is sent at once
        await wait_all(stream.deliveries)
        assert len(stream.sent) == len(stream.deliveries) > 0
        assert [delivery.result().topic for delivery in stream.deliveries] == [record.topic for record in stream.sent]


def test_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def ran(options: object, progress: object) -> Report:
        return Report(ENVIRONMENT, [dataclasses.replace(GOOD, cpu_share=0.5)], [ENDED])

    monkeypatch.setattr(outage, "run", ran)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "outage", "--json", str(tmp_path / "figures.json")])
    assert main() == 1
    assert "| CPU ≤ 5% of a core | 50.0% | **not met** |" in capsys.readouterr().out
    assert '"cpu_share": 0.5' in (tmp_path / "figures.json").read_text()
