from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from aioproducer.errors import KafkaError
from benchmarks.comparison import runner as runner_module
from benchmarks.comparison.broker import Broker
from benchmarks.comparison.case import Case, Done
from benchmarks.comparison.report import Report
from benchmarks.comparison.runner import Runner
from benchmarks.comparison.worker import WorkerFailed
from benchmarks.harness.produce_meter import Counts
from benchmarks.harness.statistics import Spread
from benchmarks.works.curve_works import CURVE_WORKS
from benchmarks.works.line_works import LINE_WORKS
from benchmarks.works.run import Description, Measurement, Run
from benchmarks.works.works import WORKS
from tests.benchmarks.comparison.reports import CLIENTS_THERE, a_case
from tests.benchmarks.environments import ENVIRONMENT


class Stage:
    """Topics with ``found`` records, and workers that answer without working."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Measurement | WorkerFailed], found: dict[str, int]
    ) -> None:
        self.runs: list[Run] = []
        self.made: list[tuple[int, int]] = []
        self.fails_for = 0
        self.made_ready = 0
        """How often the page cache was."""
        self._answers = answers
        self._found = found
        monkeypatch.setattr(runner_module, "fresh_topics", self.fresh_topics)
        monkeypatch.setattr(runner_module, "measure", self.measure)
        monkeypatch.setattr(runner_module, "ready_page_cache", self.ready_page_cache)

    @contextlib.asynccontextmanager
    async def fresh_topics(
        self, servers: str, partitions: int, topics: int, configs: Mapping[str, str] | None = None
    ) -> AsyncIterator[SimpleNamespace]:
        """What is in them is counted before and after each run, or only after it."""
        before = len(self.runs)

        async def records() -> int:
            return sum(self._found[run.client] for run in self.runs[before:])

        if partitions == self.fails_for:
            raise KafkaError("no room")
        self.made.append((partitions, topics))
        yield SimpleNamespace(name=f"topic-{before}", records=records)

    async def ready_page_cache(self, size: int) -> None:
        assert size > 256 << 20
        self.made_ready += 1

    async def measure(self, run: Run, *, timeout: float) -> Measurement:
        assert self.made_ready == len(self.runs) + 1, "before each run"
        self.runs.append(run)
        answer = self._answers[run.client]
        if isinstance(answer, WorkerFailed):
            raise answer
        return answer


BROKER = Broker("localhost:1")


def a_runner(progress=lambda case, done: None, broker: Broker = BROKER) -> Runner:
    return Runner(lambda client: broker, "asyncio", lambda work, client: 1000 // client.share, progress)


async def test_clients_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, part = Measurement(1000, 1, 1, 1), Measurement(250, 1, 1, 1)
    stage = Stage(monkeypatch, {"ours": whole, "theirs": part}, found={"ours": 1100, "theirs": 275})
    stream, tasks = Case(WORKS["stream-100"]), Case(WORKS["tasks-100"])
    reported: list[tuple[Case, Done]] = []
    await a_runner(lambda case, done: reported.append((case, done))).run([stream, tasks], CLIENTS_THERE[:2], 2)
    turns = [(run.work, run.client) for run in stage.runs]
    both = [("stream-100", "ours"), ("stream-100", "theirs")]
    # A round for the brokers to warm up; then both in turn; and who cannot do a work has no turn.
    assert turns[:2] == both
    assert [sorted(turns[start : start + 2]) for start in (2, 4)] == [both] * 2
    assert turns[6:] == [("tasks-100", "ours")] * 2
    assert sorted((done.client, done.round) for done in stream.done) == [
        ("ours", 1),
        ("ours", 2),
        ("theirs", 1),
        ("theirs", 2),
    ]
    assert [done.round for _, done in reported] == [0, 0, 1, 1, 2, 2, 1, 2]
    assert len({run.topic for run in stage.runs}) == len(stage.runs)
    assert {run.client: (run.records, run.warm_up) for run in stage.runs} == {"ours": (1000, 100), "theirs": (250, 25)}
    assert {run.tasks for run in stage.runs if run.work == "tasks-100"} == {1000}
    assert not any(done.problem for _, done in reported)


async def test_each_round_has_another_order_and_each_comparison_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"client {number}" for number in range(6)]
    stage = Stage(monkeypatch, dict.fromkeys(names, Measurement(1000, 1, 1, 1)), found=dict.fromkeys(names, 1100))
    clients = [Description(name, "1.0", ["stream-100"]) for name in names]
    orders = []
    for _ in range(2):
        case = Case(WORKS["stream-100"])
        await a_runner().run([case], clients, 3)
        orders.append([done.client for done in case.done])
        assert [done.round for done in case.done] == [1] * 6 + [2] * 6 + [3] * 6
    assert orders[0] == orders[1]
    rounds = [orders[0][start : start + 6] for start in (0, 6, 12)]
    assert all(sorted(one) == names for one in rounds)
    assert len({tuple(one) for one in rounds}) == 3
    assert len(stage.runs) == 2 * 4 * 6


async def test_the_brokers_cpu_time_is_shared_out_among_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    Stage(monkeypatch, {"ours": Measurement(1000, 1, 1, 1)}, found={"ours": 1100})
    used = iter(range(0, 1000, 11))
    case = a_case()
    await a_runner(broker=Broker("localhost:1", lambda: next(used))).run([case], CLIENTS_THERE[:1], 1)
    assert case.summary("ours")[0].figures["broker"] == Spread(10_000, 10_000, 10_000)


async def test_many_partitions_are_made_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, {"ours": Measurement(1000, 1, 1, 1)}, found={"ours": 1100})
    few, many = Case(CURVE_WORKS["partitions=10"]), Case(CURVE_WORKS["partitions=1000"])
    client = Description("ours", "1.0", [few.work.name, many.work.name])
    await a_runner().run([few, many], [client], 2)
    assert stage.made == [(10, 1)] * 3 + [(1000, 1)]
    assert not any(done.problem for done in [*few.done, *many.done])


async def test_topics_that_cannot_be_made_are_a_problem_of_their_case_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, {"ours": Measurement(1000, 1, 1, 1)}, found={"ours": 1100})
    stage.fails_for = 10
    bad, good = Case(CURVE_WORKS["partitions=10"]), Case(CURVE_WORKS["partitions=100"])
    await a_runner().run([bad, good], [Description("ours", "1.0", [bad.work.name, good.work.name])], 1)
    assert [done.problem for done in bad.done] == ["no room"]
    assert [done.problem for done in good.done] == [""]


async def test_paced_work_is_done_at_half_the_pace_makers_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Description("confluent-kafka", "1.0", ["stream-100", "paced"])
    stage = Stage(monkeypatch, {maker.name: Measurement(1000, 0.01, 1, 1)}, found={maker.name: 1100})
    await a_runner().run([Case(WORKS["stream-100"]), Case(WORKS["paced"])], [maker], 1)
    assert [(run.work, run.rate) for run in stage.runs[1:]] == [("stream-100", 0.0), ("paced", 50_000.0)]


async def test_without_a_pace_paced_work_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, {}, found={})
    paced = Case(WORKS["paced"])
    await a_runner().run([paced], CLIENTS_THERE[:1], 1)
    assert not stage.runs
    assert not paced.done
    report = Report(ENVIRONMENT, CLIENTS_THERE, [paced], 1)
    assert "- Left out: paced: there is no pace: stream-100 was not done by confluent-kafka" in report.markdown()


class ALine:
    """Has carried something whenever its length changes."""

    def __init__(self) -> None:
        self.told: list[tuple[float, int]] = []

    async def set_round_trip(self, milliseconds: float, *, uncounted: int = 0) -> Counts:
        self.told.append((milliseconds, uncounted))
        return Counts(requests=7, batches=4, batch_bytes=4000)


async def test_a_line_is_long_only_while_a_client_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    Stage(monkeypatch, {"ours": Measurement(1000, 2.0, 1, 1)}, found={"ours": 1100})
    line: Any = ALine()
    case = Case(LINE_WORKS["line-1-50ms"])
    client = Description("ours", "1.0", [case.work.name])
    await a_runner(broker=Broker("localhost:1", line=line)).run([case], [client], 1)
    assert line.told == [(50, 100_000), (0, 0)] * 2
    figures = case.summary("ours")[0].figures
    assert figures["requests"].median == 3.5
    assert figures["batch"].median * 1024 == 1000


async def test_clients_may_have_brokers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Measurement(1000, 1, 1, 1)
    stage = Stage(monkeypatch, {"ours": answer, "theirs": answer}, found={"ours": 1100, "theirs": 1100})
    runner = Runner(lambda client: Broker(f"{client}:1"), "asyncio", lambda work, client: 1000, lambda case, done: None)
    await runner.run([a_case()], CLIENTS_THERE[:2], 1)
    assert {run.client: run.bootstrap_servers for run in stage.runs} == {"ours": "ours:1", "theirs": "theirs:1"}


@pytest.mark.parametrize(
    ("found", "failures", "problem"),
    [
        (1100, {"TimeoutException": 3}, "3 × TimeoutException"),
        (1099, {}, "1 of 1,100 records are not in the log"),
        (1101, {}, "1 more records are in the log than were sent"),
    ],
)
async def test_problems_are_seen(
    found: int, failures: dict[str, int], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Stage(monkeypatch, {"ours": Measurement(1000, 1, 1, 1, failures)}, {"ours": found})
    case = a_case()
    await a_runner().run([case], CLIENTS_THERE[:1], 1)
    assert [done.problem for done in case.done] == [problem]


async def test_a_worker_that_fails_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Measurement | WorkerFailed] = {
        "ours": WorkerFailed("it broke"),
        "theirs": Measurement(250, 1, 1, 1),
    }
    Stage(monkeypatch, answers, found={"ours": 0, "theirs": 275})
    case = a_case()
    await a_runner().run([case], CLIENTS_THERE[:2], 1)
    assert sorted((done.client, done.problem) for done in case.done) == [("ours", "it broke"), ("theirs", "")]
