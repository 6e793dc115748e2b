from __future__ import annotations

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.harness.environment import Environment
from benchmarks.pipelining import linger
from benchmarks.pipelining.far_broker import TOPIC
from benchmarks.pipelining.linger import PACED, PARTITIONS, STREAM, Run, Work
from tests.support.leaks import no_leaks as no_leaks


def report(work: Work, **rates: tuple[float, float]) -> linger.Report:
    """Of one round: each setting's records/s, and the broker's microseconds of CPU time per record."""
    runs = [
        Run(work, setting.replace("_", " "), 1, rate, 2.0, None if work.round_trip_ms else broker_us)
        for setting, (rate, broker_us) in rates.items()
    ]
    return linger.Report(Environment.now(loop="asyncio", broker="none"), [work], 1, 1.0, runs)


def test_few_tasks_are_held_against_linger_0() -> None:
    work = Work("10 tasks", 20)
    assert report(work, default=(900, 1), linger_0=(1000, 1), linger_5=(5000, 1)).problems() == []
    (problem,) = report(work, default=(899, 1), linger_0=(1000, 1), linger_5=(1, 1)).problems()
    assert problem.startswith("10 tasks, 20 ms: at least 0.9 of linger 0's rate: it is 0.90")


@pytest.mark.parametrize("arrivals", ["100 tasks", STREAM, PACED])
@pytest.mark.parametrize("faster", ["linger_0", "linger_5"])
def test_everything_else_is_held_against_both(arrivals: str, faster: str) -> None:
    work = Work(arrivals, 0)
    rates = {"linger_0": (1.0, 2.0), "linger_5": (1.0, 2.0), faster: (1000.0, 2.0)}
    assert report(work, default=(950, 2.2), **rates).problems() == []
    (problem,) = report(work, default=(949, 2.2), **rates).problems()
    assert f"none: at least 0.95 of {faster.replace('_', ' ')}'s rate" in problem


def test_streams_may_not_cost_the_broker_more() -> None:
    fixed = {"linger_0": (1000.0, 9.0), "linger_5": (1000.0, 2.0)}
    (problem,) = report(Work(STREAM, 0), default=(1000, 2.3), **fixed).problems()
    assert "at most 1.1 of the broker's CPU time with linger 5" in problem
    assert report(Work("100 tasks", 0), default=(1000, 2.3), **fixed).problems() == []
    assert report(Work(STREAM, 20), default=(1000, 2.3), **fixed).problems() == [], (
        "of the embedded broker it is unknown"
    )


def test_the_table() -> None:
    written = report(Work("1 task", 0), default=(1000, 3), linger_0=(1100, 4), linger_5=(120, 5)).markdown()
    assert "| what sends | round trip | default | linger 0 | linger 5 |" in written
    assert "| 1 task | none | 1,000, 2.00, 3.00 | 1,100, 2.00, 4.00 | 120, 2.00, 5.00 |" in written


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.parametrize("setting", linger.SETTINGS)
@pytest.mark.parametrize("arrivals", ["1 task", "10 tasks", STREAM, PACED])
async def test_a_run(arrivals: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linger, "PACE", 1000)
    async with EmbeddedCluster() as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        run = await linger.measure(Work(arrivals, 0), setting, 1, 0.3, cluster.bootstrap_servers, lambda: None)
        offsets = [cluster.log(TOPIC, number).log_end_offset for number in range(PARTITIONS)]
    assert 0 < run.records_per_s * 0.3 < sum(offsets)
    assert run.p50_ms > 0
    assert run.broker_us is None
