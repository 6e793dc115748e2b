from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import IO, Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.cli.commands import line_output
from tests.cli.conftest import Cluster, Run

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def read(run: Run, cluster: Cluster) -> Run:
    """``read(TOPIC, ...)`` from the cluster."""
    return lambda *args, **more: run("read", *args, "--bootstrap-server", cluster.servers, **more)


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def values(out: str) -> list[Any]:
    return [line["value"] for line in lines(out)]


def send(cluster: Cluster, *records: bytes | None, topic: str = "t", **more: Any) -> None:
    async def work() -> None:
        async with KafkaProducer(bootstrap_servers=cluster.servers, linger_ms=0) as producer:
            for value in records:
                await producer.send(topic, value, **more)

    asyncio.run(work())


def test_a_record_is_a_line(read: Run, cluster: Cluster) -> None:
    headers = [("trace", b"1"), ("none", None), ("raw", b"\xff")]
    send(cluster, "größe\n".encode(), key=b"k", timestamp_ms=1_700_000_000_123, headers=headers)
    send(cluster, b"\xff\x00", None, timestamp_ms=7)
    result = read("t")
    assert (result.status, result.err) == (0, "")
    assert lines(result.out) == [
        {
            "partition": 0,
            "offset": 0,
            "timestamp_ms": 1_700_000_000_123,
            "key": "k",
            "value": "größe\n",
            "headers": [["trace", "1"], ["none", None], ["raw", {"base64": "/w=="}]],
        },
        {"partition": 0, "offset": 1, "timestamp_ms": 7, "key": None, "value": {"base64": "/wA="}, "headers": []},
        {"partition": 0, "offset": 2, "timestamp_ms": 7, "key": None, "value": None, "headers": []},
    ]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", "01234"),
        ("latest", ""),
        ("0", "01234"),
        ("3", "34"),
        ("5", ""),
        ("-2", "34"),
        ("-9", "01234"),
        ("@2000", "234"),
        ("1970-01-01T00:00:03.500Z", "4"),
        ("2026-01-31T09:30", ""),
    ],
)
def test_reading_begins_where_from_says(read: Run, cluster: Cluster, start: str, expected: str) -> None:
    for number in range(5):
        send(cluster, b"%d" % number, timestamp_ms=number * 1000)
    result = read("t", "--from", start)
    assert (result.status, result.err) == (0, "")
    assert "".join(values(result.out)) == expected


def test_partitions_one_after_the_other_and_no_more_than_the_limit(read: Run, cluster: Cluster) -> None:
    cluster.create_topic("p", 3)
    for partition in range(3):
        send(cluster, b"a%d" % partition, b"b%d" % partition, topic="p", partition=partition)
    assert values(read("p").out) == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert values(read("p", "-n", 3).out) == ["a0", "b0", "a1"]
    assert values(read("p", "-n", 100).out) == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert values(read("p", "--partition", 2, "--partition", 0).out) == ["a2", "b2", "a0", "b0"]
    assert values(read("p", "--from", "-1").out) == ["b0", "b1", "b2"]
    assert values(read("p", "--from", 1, "--partition", 1).out) == ["b1"]
    assert sorted(values(read("p", "--follow", "-n", 6).out)) == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_committed_records_alone(read: Run, cluster: Cluster) -> None:
    async def work() -> None:
        async with KafkaProducer(bootstrap_servers=cluster.servers, transactional_id="x") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("t", b"committed")
            await producer.begin_transaction()
            await producer.send("t", b"aborted")
            await producer.abort_transaction()

    asyncio.run(work())
    assert values(read("t").out) == ["committed", "aborted"]
    assert values(read("t", "--read-committed").out) == ["committed"]
    assert values(read("t", "-X", "isolation.level=read_committed", "-X", "linger.ms=5").out) == ["committed"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nosuch"], 1, "UnknownTopicOrPartitionException"),
        (["t", "--partition", 1], 1, "t has no partition 1: it has 1, counted from 0"),
        (["t", "--from", 9], 1, "offset 9 is not in t-0, which ends at 1"),
        (["t", "--from", "soon"], 2, "'soon' is neither earliest, latest"),
        (["t", "-n", 0], 2, "'-n'"),
        (["t", "-X", "fetch.min.byte=1"], 2, "unknown reader config 'fetch.min.byte'; did you mean 'fetch.min.bytes'?"),
        (["p", "--from", 0], 1, "an offset belongs to one partition: name it with --partition"),
    ],
)
def test_mistakes(read: Run, cluster: Cluster, arguments: list[object], status: int, message: str) -> None:
    send(cluster, b"v")
    cluster.create_topic("p", 2)
    result = read(*arguments)
    assert (result.status, result.out) == (status, "")
    assert message in " ".join(result.err.split())
    for thread in threading.enumerate():
        if thread.name == "aioproducer output":
            thread.join()  # it ends, though no line was put


def test_too_many_partitions_to_follow(read: Run, cluster: Cluster) -> None:
    cluster.create_topic("wide", 101)
    assert read("wide").out == ""
    result = read("wide", "--follow")
    assert (result.status, result.out) == (1, "")
    assert "101 partitions are too many to follow at once" in result.err


def stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def test_following_until_ctrl_c(start_process: Start, cluster: Cluster) -> None:
    cluster.create_topic("p", 2)
    send(cluster, b"before", topic="p", partition=0)
    process = start_process("read", "p", "--follow", "--bootstrap-server", cluster.servers)
    assert json.loads(stdout(process).readline())["value"] == "before"
    for partition in (1, 0):
        send(cluster, b"later", topic="p", partition=partition)
        line = json.loads(stdout(process).readline())
        assert (line["value"], line["partition"]) == ("later", partition)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (out, err, process.returncode) == (b"", b"Interrupted.\n", 130)


def test_the_reader_of_the_lines_may_stop_early(start_process: Start, cluster: Cluster) -> None:
    send(cluster, *[bytes(100_000)] * 20)
    process = start_process("read", "t", "--follow", "--bootstrap-server", cluster.servers)
    assert json.loads(stdout(process).readline())["offset"] == 0
    stdout(process).close()
    assert process.wait() == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_ctrl_c_ends_it_though_the_lines_are_not_read(start_process: Start, cluster: Cluster) -> None:
    send(cluster, *[bytes(100_000)] * 20)
    process = start_process("read", "t", "--bootstrap-server", cluster.servers)
    assert stdout(process).read(1) == b"{"
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130


class TestLineOutput:
    async def test_lines_that_come_together_are_written_together(self, capsys: pytest.CaptureFixture[str]) -> None:
        output = line_output.LineOutput()
        for number in range(3):
            await output.put(str(number))
        await output.close()
        assert capsys.readouterr().out == "0\n1\n2\n"

    async def test_it_takes_no_more_than_there_is_room_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        goes_on, written = threading.Event(), []

        def write(chunk: bytes) -> None:
            goes_on.wait()
            written.append(len(chunk))

        monkeypatch.setattr(line_output, "_write", write)
        monkeypatch.setattr(line_output, "MOST_WAITING", 10)
        output = line_output.LineOutput()
        await output.put("x" * 20)
        await asyncio.sleep(0)
        blocked = asyncio.create_task(output.put("y"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not blocked.done()
        goes_on.set()
        await blocked
        await output.close()
        assert written == [21, 2]

    async def test_an_error_is_raised_where_lines_are_put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def write(chunk: bytes) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(line_output, "_write", write)
        output = line_output.LineOutput()

        async def fill() -> None:
            while True:
                await output.put("x")
                await asyncio.sleep(0.001)

        with pytest.raises(OSError, match="No space left"):
            await fill()
        await output.close()
