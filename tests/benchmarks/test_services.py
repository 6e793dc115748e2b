"""``python -m benchmarks services``: what it calls a failure, and each part once, small."""

from __future__ import annotations

import sys

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks import services
from benchmarks.environment import Environment
from benchmarks.http_load import Reply
from benchmarks.service_clients import CLIENTS, FLOOR
from benchmarks.service_trouble import Trouble, wrong
from benchmarks.services import Report, Run
from tests.support.leaks import no_leaks as no_leaks

ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "uvloop", "a broker")


def run(client: str, round_: int, speed: float) -> Run:
    return Run(1, client, round_, 10, speed, 2.0, 9.0, 300.0, [])


def test_ratios_are_of_the_same_round_and_the_better_of_the_others_counts() -> None:
    speeds = {"aioproducer": (300.0, 600.0), "aiokafka": (200.0, 300.0), "confluent-kafka-aio": (100.0, 100.0)}
    speeds["nothing"] = (400.0, 600.0)
    runs = [run(client, number, speed) for client, row in speeds.items() for number, speed in enumerate(row, start=1)]
    report = Report(ENVIRONMENT, 200, 5, runs, [])
    words = report.markdown()
    assert "| 1 | aioproducer | 450 | 2.0 ms | 9.0 ms | 300 µs |  |" in words
    assert "| 1 | aiokafka | 250 | 2.0 ms | 9.0 ms | 300 µs | 1.75 (1.50–2.00) |" in words
    assert (
        "| 1 a request: requests/s ÷ those on aiokafka ≥ 1.2 "
        "| 1.75 (1.50–2.00); a client that costs nothing would have 2.00 | met |"
    ) in words
    assert report.problems() == []


def test_a_target_that_is_missed_is_a_problem() -> None:
    runs = [run("aioproducer", 1, 110.0), run("aiokafka", 1, 100.0), run("confluent-kafka-aio", 1, 50.0)]
    report = Report(ENVIRONMENT, 200, 5, runs, [])
    assert report.problems() == ["1 a request: requests/s ÷ those on aiokafka ≥ 1.2: it is 1.10 (1.10–1.10)"]
    assert "**not met**" in report.markdown()


def test_a_promise_that_was_not_kept_is_a_problem() -> None:
    trouble = Trouble("a service", 10, {"201": 5, "no answer": 2}, 4, 1.5, ["1 were answered"])
    report = Report(ENVIRONMENT, 200, 5, [run("aioproducer", 1, 1.0)], [trouble])
    assert report.problems() == ["a service: 1 were answered"]
    assert "| a service | 10 | 201: 5, no answer: 2 | 4 | 1.50 s | 1 were answered |" in report.markdown()


@pytest.mark.parametrize(
    ("replies", "logged", "problem"),
    [
        ([Reply(0, 503, 0.1)], [], "no request was answered 2xx"),
        ([Reply(0, 201, 0.1), Reply(1, 202, 0.1)], [0], "1 were answered 2xx and are not in the log, such as 1"),
        ([Reply(0, 201, 0.1)], [0, 1, 1], "1 are in the log more than once, such as 1"),
        ([Reply(0, 201, 0.1), Reply(1, None, 3.5)], [0], "1 took longer than 3 s, 3.5 s at worst"),
        (
            [Reply(0, 201, 0.1), Reply(1, None, 0.1)],
            [0, 1],
            "1 were begun and not answered: they are in the log, such as 1",
        ),
    ],
)
def test_what_is_not_as_promised(replies: list[Reply], logged: list[int], problem: str) -> None:
    assert wrong(replies, logged, 3.0) == [problem]


def test_what_was_never_begun_needs_no_answer_and_504_may_be_in_the_log() -> None:
    assert wrong([Reply(0, 201, 0.1), Reply(1, None, 0.1), Reply(2, 504, 0.1)], [2, 0], 3.0) == []


@pytest.mark.usefixtures("no_leaks")
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM that could be caught")
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_turn(client: str) -> None:
    if not services.installed(client):
        pytest.skip(f"{client} is not installed")
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", 3)
        done = await services.measure(3, client, 1, cluster.bootstrap_servers, 10, 0.3)
        logged = sum(cluster.log("orders", partition).log_end_offset for partition in range(3))
    assert done.problems == []
    assert done.requests > 0
    assert client == FLOOR or 3 * done.requests <= logged
    assert done.cpu_us > 0 or done.requests < 100  # the clock of a process has ticks of 10 ms
