"""``python -m benchmarks services``: its report, what it calls a failure, and its command line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.services import services
from benchmarks.services.http_load import Reply
from benchmarks.services.instructions import Count, Instructions
from benchmarks.services.services import Report
from benchmarks.services.speed import Run, Speed
from benchmarks.services.trouble import Trouble, wrong
from tests.benchmarks.environments import ENVIRONMENT


def test_a_promise_that_was_not_kept_is_a_problem() -> None:
    trouble = Trouble("a service", 10, {"201": 5, "no answer": 2}, 4, 1.5, ["1 were answered"])
    report = Report(ENVIRONMENT, troubles=[trouble])
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
def test_each_broken_promise_is_a_problem(replies: list[Reply], logged: list[int], problem: str) -> None:
    assert wrong(replies, logged, 3.0) == [problem]


def test_requests_never_begun_need_no_answer_and_504_may_be_in_the_log() -> None:
    assert wrong([Reply(0, 201, 0.1), Reply(1, None, 0.1), Reply(2, 504, 0.1)], [2, 0], 3.0) == []


def test_the_parts_that_were_measured_are_in_the_report() -> None:
    report = Report(ENVIRONMENT)
    assert "|" not in report.markdown()
    report = replace(report, speed=Speed(10, 5, [Run(1, "tuned", "aioproducer", 1, 10, 9.0, 2.0, 9.0, 30.0, [])]))
    report = replace(report, instructions=Instructions([Count(1, "nothing", 10, 7_000_000)]))
    words = report.markdown()
    assert "| 1 | tuned | aioproducer | 9 |" in words
    assert "| 1 | nothing | 700 |  |" in words


def test_the_command_line() -> None:
    options = services.parse_arguments([])
    assert (options.parts, options.gc, options.clients) == (["speed", "trouble"], ["default", "tuned"], 1000)
    options = services.parse_arguments(["--parts", "instructions", "--gc", "tuned", "--records", "1"])
    assert (options.parts, options.gc, options.records) == (["instructions"], ["tuned"], [1])


def test_a_missing_program_is_named_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert services.main(["--parts", "instructions", "--bootstrap-server", "127.0.0.1:1"]) == 1
    assert capsys.readouterr().err == (
        "valgrind is not installed: install valgrind, or leave out --parts instructions\n"
    )
