"""Each client that is installed does each of its works, against the embedded broker."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from aioproducer.broker import EmbeddedCluster
from benchmarks.clients import CLIENTS
from benchmarks.comparison.commands import parse_compare
from benchmarks.comparison.comparison import compare
from benchmarks.comparison.worker_process import describe
from benchmarks.harness import results
from benchmarks.harness.heartbeat import INTERVAL, Heartbeat
from benchmarks.harness.processes import python_command
from benchmarks.harness.statistics import quantiles
from benchmarks.works import ways
from benchmarks.works.curve_works import CURVE_WORKS
from benchmarks.works.payload import FLIGHTS, HEADERS, TURN, Payload, write_payload
from benchmarks.works.works import PACED, STREAM, WORKS

DIFFERENT = ("stream-100", "keyed", "zstd", "tasks-100", "single", "paced", "topics=10")
"""The other works differ from these in numbers only."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", CLIENTS)
async def test_a_client_does_its_works(name: str) -> None:
    client = await describe(name)
    if client.missing:
        pytest.skip(client.missing)
    async with EmbeddedCluster() as cluster:
        arguments = ["--bootstrap-server", cluster.bootstrap_servers, "--rounds=1", "--records=300", "--clients", name]
        works = [work for name, work in {**WORKS, **CURVE_WORKS}.items() if name in DIFFERENT and name in client.works]
        report = await compare(parse_compare(arguments), works, lambda line: None)
    assert report.problems() == []
    for case in report.cases:
        # Nobody but confluent-kafka sets the pace.
        if case.work.way == PACED and name != "confluent-kafka":
            assert case.skipped
            continue
        (done,) = case.done
        assert done.measurement is not None
        assert done.measurement.records == 300
        assert done.measurement.peak_rss > 2**20
        assert done.measurement.cpu_seconds > 0
        assert bool(done.measurement.latency) == (case.work.way != STREAM)
    assert f"\n| {name} | " in report.markdown()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM that could be caught")
async def test_terminated_it_leaves_no_process_and_keeps_what_there_is(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    endless = ["--works=stream-100", "--clients=aioproducer", "--rounds=10000", "--records=200", "--json", str(file)]
    command = python_command("from benchmarks.__main__ import main; sys.exit(main())")
    async with EmbeddedCluster() as cluster:
        process = await asyncio.create_subprocess_exec(
            *(*command, "--bootstrap-server", cluster.bootstrap_servers, *endless),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stderr is not None
        while b"round 2" not in (line := await process.stderr.readline()):
            assert line, "it ended by itself"
        process.terminate()
        said, complaints = await process.communicate()
    assert process.returncode == 1
    assert complaints.endswith(b"Interrupted.\n")
    assert b"- it was interrupted" in said
    assert len(results.read(file)["cases"][0]["runs"]) >= 2
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


async def test_tasks_send_every_record_and_count_failures() -> None:
    sent: list[bytes] = []

    async def send(topic: str, value: bytes) -> None:
        sent.append(value)
        if len(sent) % 3 == 0:
            raise OSError("refused")

    failures, latencies = await ways.tasks(send, "topic", b"value", records=2007, count=100)
    assert failures == Counter(OSError=669)
    assert len(sent) == 2007
    assert 0 < len(latencies) <= 200


async def test_one_task_times_each_record() -> None:
    async def send(topic: str, value: bytes) -> None: ...

    _, latencies = await ways.tasks(send, "topic", b"value", records=10, count=1)
    assert len(latencies) == 10


async def test_paced_latency_counts_from_when_a_record_was_due() -> None:
    timed, sent = [], 0

    def send() -> None:
        nonlocal sent
        sent += 1

    def send_timed(acknowledged) -> None:
        timed.append(acknowledged)
        acknowledged()

    latencies = await ways.paced(send, send_timed, asyncio.sleep, records=200, rate=100_000.0)
    assert sent + len(timed) == 200
    assert len(latencies) == len(timed) == 200 // ways.SAMPLE
    assert min(latencies) >= 0


async def test_a_producer_that_holds_its_caller_up_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    def send_timed(acknowledged) -> None:
        nonlocal now
        if now == 100.0:
            now += 1.0  # the first record holds up all that are due within a second
        acknowledged()

    async def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("time.perf_counter", lambda: now)
    rate = 4.0 * ways.SAMPLE
    latencies = await ways.paced(lambda: None, send_timed, pause, records=8 * ways.SAMPLE, rate=rate)
    assert latencies[:5] == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0], abs=2 * ways.TICK)
    assert latencies[5:] == pytest.approx([0.0] * 3, abs=2 * ways.TICK)


async def test_a_stall_counts_for_every_moment_it_covers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = cpu = 0.0
    pauses = iter([INTERVAL, 3.5 * INTERVAL])

    async def sleep(delay: float) -> None:
        nonlocal now, cpu
        pause = next(pauses, None)
        if pause is None:
            raise asyncio.CancelledError
        now += pause
        cpu += pause / 2

    heart = Heartbeat()
    monkeypatch.setattr("benchmarks.harness.heartbeat.time.perf_counter", lambda: now)
    monkeypatch.setattr("benchmarks.harness.heartbeat.time.thread_time", lambda: cpu)
    monkeypatch.setattr("benchmarks.harness.heartbeat.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await heart._beat()
    assert heart.late == pytest.approx([0.0, 2.5 * INTERVAL, 1.5 * INTERVAL, 0.5 * INTERVAL])
    assert heart.computing == pytest.approx([0.0, 0.75 * INTERVAL, 0.0, 0.0])
    assert heart.stall == pytest.approx(2.5 * INTERVAL)


def test_quantiles() -> None:
    assert quantiles([]) == {}
    assert quantiles([5.0]) == {"p50": 5.0, "p99": 5.0, "p99.9": 5.0, "max": 5.0}
    assert quantiles(range(1, 1001)) == {"p50": 500, "p99": 990, "p99.9": 999, "max": 1000}


def test_payload_of_a_size(tmp_path: Path) -> None:
    for size in (1, 100, 1001):
        write_payload(tmp_path / "values", size)
        payload = Payload(tmp_path / "values", ["t"], keyed=False)
        assert [len(value) for value in payload.values] == [size]
        assert list(payload.records(3)) == [("t", None, payload.values[0])] * 3
        assert payload.headers is None


def test_payload_of_flights(tmp_path: Path) -> None:
    write_payload(tmp_path / "values", 0)
    payload = Payload(tmp_path / "values", ["t"], keyed=True)
    assert len(payload.values) == FLIGHTS
    assert all(value.count(b",") == 18 for value in payload.values)
    records = list(payload.records(FLIGHTS + 1))
    assert records[-1][2] == records[0][2] != records[1][2]
    assert {len(key) for _, key, _ in records if key is not None} == {16}
    assert payload.headers == HEADERS


def test_topics_take_turns(tmp_path: Path) -> None:
    write_payload(tmp_path / "values", 1)
    topics = [topic for topic, _, _ in Payload(tmp_path / "values", ["a", "b"], keyed=False).records(3 * TURN)]
    assert topics == ["a"] * TURN + ["b"] * TURN + ["a"] * TURN


def test_works_are_named_as_they_are_listed() -> None:
    assert all(work.name == name for name, work in {**WORKS, **CURVE_WORKS}.items())
    assert not WORKS.keys() & CURVE_WORKS.keys()
