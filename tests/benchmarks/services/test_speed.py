"""The speed of a service, computed; and a small run of each client."""

from __future__ import annotations

import sys

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.services import services, speed
from benchmarks.services.clients import CLIENTS, FLOOR
from benchmarks.services.speed import Run, Speed
from tests.support.leaks import no_leaks as no_leaks


def run(client: str, round_: int, speed: float) -> Run:
    return Run(1, "default", client, round_, 10, speed, 2.0, 9.0, 300.0, [])


def test_ratios_are_of_the_same_round_and_the_better_of_the_others_counts() -> None:
    speeds = {"aioproducer": (300.0, 600.0), "aiokafka": (200.0, 300.0), "confluent-kafka-aio": (100.0, 100.0)}
    speeds["nothing"] = (400.0, 600.0)
    runs = [run(client, number, speed) for client, row in speeds.items() for number, speed in enumerate(row, start=1)]
    speed = Speed(200, 5, runs)
    words = "\n".join(speed.markdown())
    assert "| 1 | default | aioproducer | 450 | 2 ms | 9 ms | 300 µs |  |" in words
    assert "| 1 | default | aiokafka | 250 | 2 ms | 9 ms | 300 µs | 1.75 (1.50–2.00) |" in words
    assert (
        "| 1 a request, GC default: requests/s ÷ those on aiokafka ≥ 1.2 "
        "| 1.75 (1.50–2.00); a client that costs nothing would have 2.00 | met |"
    ) in words
    assert list(speed.problems()) == []


def test_a_target_that_is_missed_is_a_problem() -> None:
    runs = [run("aioproducer", 1, 110.0), run("aiokafka", 1, 100.0), run("confluent-kafka-aio", 1, 50.0)]
    speed = Speed(200, 5, runs)
    assert list(speed.problems()) == [
        "1 a request, GC default: requests/s ÷ those on aiokafka ≥ 1.2: it is 1.10 (1.10–1.10)"
    ]
    assert "**not met**" in "\n".join(speed.markdown())


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM that could be caught")
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_turn(client: str) -> None:
    if not services.installed(client):
        pytest.skip(f"{client} is not installed")
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", 3)
        done = await speed.measure((3, "tuned"), client, 1, cluster.bootstrap_servers, 10, 1.0)
        logged = sum(cluster.log("orders", partition).log_end_offset for partition in range(3))
    assert done.problems == []
    assert done.requests > 0
    assert client == FLOOR or 3 * done.requests <= logged
    assert done.cpu_us > 0 or done.requests < 100  # the clock of a process has ticks of 10 ms
