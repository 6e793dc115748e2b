"""The benchmarks' harness: that it compares rightly, and that it runs. Nothing here is held to a time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from aioproducer.errors import KafkaError
from benchmarks import __main__ as command
from benchmarks import comparison
from benchmarks import runner as runner_module
from benchmarks.arguments import parse_arguments
from benchmarks.case import Case, Done
from benchmarks.clients import CLIENTS
from benchmarks.comparison import Kept, NoClients
from benchmarks.curve_works import CURVE_WORKS
from benchmarks.environment import Environment
from benchmarks.machine_cpu import MachineCpu
from benchmarks.ratios import Spread, ratios
from benchmarks.report import Report
from benchmarks.run import Description, Measurement, Run
from benchmarks.runner import Runner
from benchmarks.usage import cpu_seconds_of
from benchmarks.worker import main as worker_main
from benchmarks.worker_process import WorkerFailed, describe, measure
from benchmarks.works import WORKS

ENVIRONMENT = Environment("a day", "c0ffee", "a machine", "a system", 0.5, "Python", "uvloop", "a broker", minutes=1.0)
CLIENTS_THERE = [
    Description("ours", "1.0", ["stream-100", "tasks-100", "paced"], True),
    Description("theirs", "2.0", ["stream-100"], False, share=4),
    Description("gone", missing="No module named 'gone'"),
]


def measured(client: str, number: int, seconds: float, cpu: float = 1.0, rss: int = 2**20, problem: str = "") -> Done:
    return Done(client, number, Measurement(1000, seconds, cpu, rss), problem)


def a_case(*done: Done) -> Case:
    return Case(WORKS["stream-100"], list(done))


def a_report(*done: Done) -> Report:
    return Report(ENVIRONMENT, CLIENTS_THERE, [a_case(*done)], 3)


# Statistics


def test_ratios_are_taken_within_rounds() -> None:
    # The machine was ten times slower in the second round, for both.
    assert ratios({1: 200.0, 2: 20.0, 3: 150.0}, {1: 100.0, 2: 10.0, 3: 100.0}) == Spread(2.0, 1.5, 2.0)


def test_rounds_that_only_one_has_do_not_count() -> None:
    assert ratios({1: 6.0, 2: 8.0}, {2: 4.0, 3: 1.0}) == Spread(2.0, 2.0, 2.0)
    assert ratios({1: 6.0}, {2: 4.0}) is None


def test_summary() -> None:
    case = a_case(
        measured("ours", 1, 0.5, cpu=0.002, rss=10),
        measured("theirs", 1, 1.0, cpu=0.004, rss=40),
        measured("ours", 2, 2.0, cpu=0.004, rss=10),
        measured("theirs", 2, 6.0, cpu=0.002, rss=40),
        measured("ours", 3, 1.0, cpu=0.003, rss=10),
        measured("theirs", 3, 2.5, cpu=0.003, rss=40),
    )
    ours, theirs = case.summary("ours")
    assert (ours.client, ours.figures["speed"], ours.ratios["speed"]) == (
        "ours",
        Spread(1000, 500, 2000),
        Spread(1, 1, 1),
    )
    assert ours.figures["cpu"] == Spread(3.0, 2.0, 4.0)
    assert theirs.ratios == {
        "speed": Spread(2.5, 2.0, 3.0),
        "cpu": Spread(1.0, 0.5, 2.0),
        "rss": Spread(0.25, 0.25, 0.25),
    }
    assert theirs.problems == []


def test_latency_and_stall_are_in_milliseconds_where_they_were_measured() -> None:
    latency = {"p50": 0.001, "p99": 0.002, "p99.9": 0.003, "max": 0.004}
    timed = Measurement(1000, 1.0, 1.0, 1, latency=latency, stall={"p99.9": 0.005, "max": 0.006})
    figures = a_case(Done("ours", 1, timed)).summary("ours")[0].figures
    names = ("p50", "p99", "p99.9", "stall", "longest")
    assert [figures[name].median for name in names] == [1.0, 2.0, 3.0, 5.0, 6.0]
    assert not set(names) & set(a_case(measured("ours", 1, 1.0)).summary("ours")[0].figures)


def test_a_client_that_loses_records_gets_no_figures() -> None:
    case = a_case(
        measured("ours", 1, 1.0),
        measured("theirs", 1, 0.001, problem="900 of 1,000 records are not in the log"),
        measured("ours", 2, 1.0),
        Done("theirs", 2, None, "KafkaTimeoutError"),
    )
    _, theirs = case.summary("ours")
    assert theirs.figures == theirs.ratios == {}
    assert theirs.problems == ["round 1: 900 of 1,000 records are not in the log", "round 2: KafkaTimeoutError"]


# Report


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


def test_environment_is_this_machines() -> None:
    environment = Environment.now(loop="asyncio", broker="somewhere")
    assert environment.python.endswith(".".join(map(str, sys.version_info[:3])))
    assert ("Broker", "somewhere") in environment.lines()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux is asked")
def test_cpu_time_of_others_is_a_share() -> None:
    others = MachineCpu().others()
    assert others is not None
    assert others >= 0


# Command line


def test_defaults() -> None:
    options = parse_arguments([])
    assert options.rounds == 5
    assert options.clients == list(CLIENTS)
    assert options.works == list(WORKS)
    assert options.bootstrap_server is None
    assert not options.quick


def test_choices() -> None:
    options = parse_arguments(["--clients", "aiokafka,aioproducer", "--works=tasks-100", "--quick"])
    assert options.clients == ["aiokafka", "aioproducer"]
    assert options.works == ["tasks-100"]
    assert options.quick


def test_quick_is_a_part_once() -> None:
    options = parse_arguments(["--quick"])
    assert options.rounds == 1
    assert set(options.works) < set(WORKS)
    assert parse_arguments(["--quick", "--rounds=3", "--works=lz4"]).rounds == 3


@pytest.mark.parametrize(
    "arguments",
    [["--rounds", "0"], ["--clients", "pigeon"], ["--works", ""], ["--records", "many"]],
)
def test_nonsense_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse_arguments(arguments)
    assert exit_.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_quick_runs_and_slow_clients_have_fewer_records() -> None:
    for work in WORKS.values():
        assert 0 < work.records_of(1, quick=True) < work.records_of(1, quick=False) == work.records
        assert work.records_of(4, quick=False) == work.records // 4
        assert work.records_of(10**12, quick=True) == 1


@pytest.mark.parametrize(("problem", "status"), [("", 0), ("it broke", 1)])
def test_exit_status_and_json_file(
    problem: str, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def compared(options: object, works: object, progress: object, kept: Kept) -> Report:
        report = a_report(measured("ours", 1, 0.5, problem=problem))
        kept(report)
        return report

    monkeypatch.setattr(comparison, "compare", compared)
    files = ["--json", str(tmp_path / "figures.json"), "--plot", str(tmp_path / "figures.svg")]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *files])
    assert command.main() == status
    assert (tmp_path / "figures.svg").read_text().startswith("<svg")
    assert json.loads((tmp_path / "figures.json").read_text())["rounds"] == 3
    assert capsys.readouterr().out == a_report(measured("ours", 1, 0.5, problem=problem)).markdown()


def test_nothing_to_measure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def compared(options: object, works: object, progress: object, kept: Kept) -> Report:
        raise NoClients("gone: not there")

    monkeypatch.setattr(comparison, "compare", compared)
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    assert command.main() == 1
    assert "gone: not there" in capsys.readouterr().err


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, asyncio.CancelledError])
def test_an_interrupted_run_is_not_lost(
    interruption: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "figures.json"

    async def compared(options: object, works: object, progress: object, kept: Kept) -> Report:
        kept(
            dataclasses.replace(
                a_report(measured("ours", 1, 0.5)), environment=Environment.now(loop="asyncio", broker="")
            )
        )
        raise interruption

    monkeypatch.setattr(comparison, "compare", compared)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--json", str(file)])
    assert command.main() == 1
    printed = capsys.readouterr()
    assert printed.err == "Interrupted.\n"
    assert "| ours | 2,000 |" in printed.out
    monkeypatch.setattr(sys, "argv", ["benchmarks", "report", str(file)])
    assert command.main() == 1, "it is not whole"
    assert capsys.readouterr().out == printed.out


# The runner


class Stage:
    """Topics with ``found`` records, and workers that answer without working."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Measurement | WorkerFailed], found: dict[str, int]
    ) -> None:
        self.runs: list[Run] = []
        self.made: list[tuple[int, int]] = []
        self.fails_for = 0
        self._answers = answers
        self._found = found
        monkeypatch.setattr(runner_module, "fresh_topics", self.fresh_topics)
        monkeypatch.setattr(runner_module, "measure", self.measure)

    @contextlib.asynccontextmanager
    async def fresh_topics(self, servers: str, partitions: int, topics: int) -> AsyncIterator[SimpleNamespace]:
        """What is in them is counted before and after each run, or only after it."""
        before = len(self.runs)

        async def records() -> int:
            return sum(self._found[run.client] for run in self.runs[before:])

        if partitions == self.fails_for:
            raise KafkaError("no room")
        self.made.append((partitions, topics))
        yield SimpleNamespace(name=f"topic-{before}", records=records)

    async def measure(self, run: Run, *, timeout: float) -> Measurement:
        self.runs.append(run)
        answer = self._answers[run.client]
        if isinstance(answer, WorkerFailed):
            raise answer
        return answer


def a_runner(progress=lambda case, done: None) -> Runner:
    return Runner("localhost:1", "asyncio", lambda work, client: 1000 // client.share, progress)


async def test_clients_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, part = Measurement(1000, 1, 1, 1), Measurement(250, 1, 1, 1)
    stage = Stage(monkeypatch, {"ours": whole, "theirs": part}, found={"ours": 1100, "theirs": 275})
    stream, tasks = Case(WORKS["stream-100"]), Case(WORKS["tasks-100"])
    reported: list[tuple[Case, Done]] = []
    await a_runner(lambda case, done: reported.append((case, done))).run([stream, tasks], CLIENTS_THERE[:2], 2)
    turns = [(run.work, run.client) for run in stage.runs]
    # A round for the brokers to warm up; then both in turn; and who cannot do a work has no turn.
    assert turns == [("stream-100", "ours"), ("stream-100", "theirs")] * 3 + [("tasks-100", "ours")] * 2
    assert [(done.client, done.round) for done in stream.done] == [
        ("ours", 1),
        ("theirs", 1),
        ("ours", 2),
        ("theirs", 2),
    ]
    assert [done.round for _, done in reported] == [0, 0, 1, 1, 2, 2, 1, 2]
    assert len({run.topic for run in stage.runs}) == len(stage.runs)
    assert {run.client: (run.records, run.warm_up) for run in stage.runs} == {"ours": (1000, 100), "theirs": (250, 25)}
    assert {run.tasks for run in stage.runs if run.work == "tasks-100"} == {1000}
    assert not any(done.problem for _, done in reported)


async def test_the_brokers_cpu_time_is_shared_out_among_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    Stage(monkeypatch, {"ours": Measurement(1000, 1, 1, 1)}, found={"ours": 1100})
    used = iter(range(0, 1000, 11))
    case = a_case()
    runner = Runner("localhost:1", "asyncio", lambda work, client: 1000, lambda case, done: None, lambda: next(used))
    await runner.run([case], CLIENTS_THERE[:1], 1)
    assert case.summary("ours")[0].figures["broker"] == Spread(10_000, 10_000, 10_000)


def test_what_a_process_has_used() -> None:
    used = cpu_seconds_of(os.getpid())
    assert used is None or used > 0
    assert cpu_seconds_of(2**22 + 1) is None


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
    assert [(done.client, done.problem) for done in case.done] == [("ours", "it broke"), ("theirs", "")]


# Workers


async def test_clients_describe_themselves() -> None:
    ours = await describe("aioproducer")
    assert ours.works == [*WORKS, *CURVE_WORKS]
    assert ours.share == 1
    assert ours.about.endswith(("compiled", "interpreted"))
    assert ours.idempotent
    assert not ours.missing


def test_a_client_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(CLIENTS, "pigeon", "pigeon_post:Pigeon")
    worker_main(["describe", "pigeon"])
    assert json.loads(capsys.readouterr().out)["missing"] == "No module named 'benchmarks.clients.pigeon_post'"


async def test_a_workers_last_words_are_the_reason() -> None:
    run = Run("aioproducer", "stream-100", "127.0.0.1:1", "topic", "payload", 1, 1, loop="no_such_loop")
    with pytest.raises(WorkerFailed, match="No module named 'no_such_loop'"):
        await measure(run, timeout=30)


async def test_a_worker_that_does_not_answer_is_ended() -> None:
    run = Run("aioproducer", "stream-100", "127.0.0.1:1", "topic", "payload", 1, 1, loop="asyncio")
    with pytest.raises(WorkerFailed, match="no answer within"):
        await measure(run, timeout=0.1)
