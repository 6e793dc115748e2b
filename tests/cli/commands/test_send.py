from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from aioproducer.broker.handlers import produce
from aioproducer.broker.kafka_apis import APIS, Api
from aioproducer.cli import stall
from aioproducer.cli.commands.send import Shipment
from aioproducer.protocol.api_key import ApiKey
from tests.cli.conftest import Cluster, Requests, Run

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def send(run: Run, cluster: Cluster) -> Run:
    """``send(TOPIC, FILE, ...)`` to the cluster."""
    return lambda *args, **more: run("send", *args, "--bootstrap-server", cluster.servers, **more)


def facts(out: str) -> dict[str, str]:
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines())


def reasons(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.with_name(path.name + ".reasons.ndjson").read_text().splitlines()]


# What is sent


def test_lines_of_a_file(send: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_bytes(b"a\nb\r\n\n\xff\x00")
    result = send("t", file)
    assert (result.status, result.err) == (0, "")
    assert cluster.values("t") == [b"a", b"b", b"", b"\xff\x00"]
    reported = facts(result.out)
    assert reported["records"] == "4"
    assert reported["bytes"] == "4 bytes of keys and values"
    assert reported["batches"] == "1, 4.0 records each"
    assert reported.keys() == {"records", "bytes", "seconds", "throughput", "batches", "acknowledged"}


@pytest.mark.parametrize("arguments", [["t"], ["t", "-"]])
def test_lines_of_standard_input(send: Run, cluster: Cluster, arguments: list[str]) -> None:
    assert send(*arguments, input=b"a\nb\n").status == 0
    assert cluster.values("t") == [b"a", b"b"]


def test_keys_headers_and_partition(send: Run, cluster: Cluster) -> None:
    cluster.create_topic("p", 3)
    result = send("p", "--key-separator", ":", "--header", "a=1", "--header", "b=x=y", "--partition", 2, input=b"k:v\n")
    assert result.status == 0
    (record,) = cluster.records("p", 2)
    assert (record.key, record.value, record.headers) == (b"k", b"v", (("a", b"1"), ("b", b"x=y")))


def test_ndjson_by_its_suffix_packed(send: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "x.ndjson.gz"
    file.write_bytes(gzip.compress(b'{"id": 7}\n\n{"id": "x"}\n'))
    assert send("t", file, "--key-field", "id").status == 0
    assert [(record.key, record.value) for record in cluster.records("t")] == [
        (b"7", b'{"id": 7}'),
        (b"x", b'{"id": "x"}'),
    ]


def test_csv(send: Run, cluster: Cluster) -> None:
    assert send("t", "--format", "csv", "--key-field", "a", input=b"a,b\n1,2\n").status == 0
    assert [(record.key, record.value) for record in cluster.records("t")] == [(b"1", b'{"a":"1","b":"2"}')]


def test_an_empty_input(send: Run, cluster: Cluster) -> None:
    result = send("t", input=b"")
    assert (result.status, result.err) == (0, "")
    assert facts(result.out)["records"] == "0"


def test_many_records_through_little_memory(send: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    lines = [b"line %d" % number for number in range(50_000)]
    file.write_bytes(b"\n".join(lines))
    assert send("t", file, "-X", "buffer.memory=100000").status == 0
    assert cluster.values("t") == lines


def test_quiet(send: Run, cluster: Cluster, tmp_path: Path) -> None:
    result = send("t", "--quiet", input=b"a\n")
    assert (result.status, result.out, result.err) == (0, "", "")
    result = send("t", "-q", "--format", "ndjson", input=b"{\n")
    assert (result.status, result.out) == (1, "")
    assert "1 record not delivered:" in result.err


def test_configs_from_a_file(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers = {cluster.servers}\ncompression.type = gzip\n")
    assert run("send", "t", "--config", file, input=b"a\n").status == 0
    assert cluster.values("t") == [b"a"]


# What is not


def test_bad_lines_are_counted_and_kept_and_the_others_sent(send: Run, cluster: Cluster, tmp_path: Path) -> None:
    failed = tmp_path / "failed.ndjson"
    text = b'{"k": 1}\n{bad\r\n{"no": 1}\n{"k": 2}\n'
    result = send("t", "--format", "ndjson", "--key-field", "k", "--failed", failed, input=text)
    assert result.status == 1
    assert cluster.values("t") == [b'{"k": 1}', b'{"k": 2}']
    assert facts(result.out)["records"] == "2"
    first, *causes, last = result.err.splitlines()
    assert first == "2 records not delivered:"
    assert sorted(cause.split(": ")[1] for cause in causes) == ["invalid JSON", "no key"]
    assert last == f"Kept in {failed}, with reasons in {failed}.reasons.ndjson"
    assert failed.read_bytes() == b'{bad\r\n{"no": 1}\n'
    assert [(reason["line"], reason["outcome"], reason["cause"]) for reason in reasons(failed)] == [
        (2, "not_sent", "invalid JSON"),
        (3, "not_sent", "no key"),
    ]


def test_records_kept_in_a_file_can_be_sent_again(send: Run, cluster: Cluster, tmp_path: Path) -> None:
    failed = tmp_path / "failed.csv"
    text = b'a,b\n1,"x\ny"\n2,' + b"z" * 2000 + b"\n3,w\n"
    arguments = ("--format", "csv", "--key-field", "a")
    assert send("t", *arguments, "--failed", failed, "-X", "max.request.size=1000", input=text).status == 1
    assert failed.read_bytes() == b"a,b\n2," + b"z" * 2000 + b"\n"
    assert [reason["cause"] for reason in reasons(failed)] == ["RecordTooLargeException"]
    assert send("t", failed, "--key-field", "a", "--failed", tmp_path / "again").status == 0
    assert [record.key for record in cluster.records("t")] == [b"1", b"3", b"2"]
    assert not (tmp_path / "again").exists()


def test_a_file_of_failed_records_is_not_overwritten(send: Run, cluster: Cluster, tmp_path: Path) -> None:
    failed = tmp_path / "failed.txt"
    failed.write_text("kept\n")
    for file in ("-", failed):
        result = send("t", file, "--failed", failed, input=b"a\n")
        assert (result.status, result.out) == (1, "")
        assert "exists already" in result.err
    assert failed.read_text() == "kept\n"
    assert cluster.values("t") == []


def test_an_outcome_that_is_not_known(
    send: Run, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker appends and never answers."""

    def swallow(*arguments: Any) -> None:
        produce.handle(*arguments)

    monkeypatch.setitem(APIS, ApiKey.PRODUCE, Api(produce.VERSIONS, swallow))
    failed = tmp_path / "failed"
    configs = ("-X", "request.timeout.ms=100", "-X", "delivery.timeout.ms=150", "-X", "linger.ms=0")
    result = send("t", "--failed", failed, *configs, input=b"a\nb\n")
    assert result.status == 1
    assert failed.read_bytes() == b"a\nb\n"
    assert {reason["outcome"] for reason in reasons(failed)} == {"unknown"}
    assert {reason["cause"] for reason in reasons(failed)} == {"TimeoutException"}
    assert "2  unknown: may have arrived: TimeoutException: line 1: not delivered to t-0 within" in result.err


def test_it_says_why_nothing_gets_through(send: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(APIS, ApiKey.PRODUCE, Api(produce.VERSIONS, lambda *arguments: None))
    monkeypatch.setattr(stall, "QUIET_FOR", 0.0)
    configs = ("-X", "request.timeout.ms=1500", "-X", "delivery.timeout.ms=1500", "-X", "linger.ms=0")
    result = send("t", *configs, input=b"a\n")
    assert result.status == 1
    assert result.err.count("Nothing got through") >= 1
    assert len(re.findall(r"t-0: its request has not been answered by 127\.0\.0\.1:\d+ \(node 0\)", result.err)) == 1


def test_a_broken_file(send: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "x.txt.gz"
    file.write_bytes(gzip.compress(b"\n".join(os.urandom(50).hex().encode() for _ in range(20_000)))[:-10])
    result = send("t", file)
    assert result.status == 1
    assert f"Error: {file}: cannot be decompressed: " in result.err
    assert int(facts(result.out)["records"].replace(",", "")) == len(cluster.values("t")) > 0


def test_csv_that_does_not_name_the_key(send: Run, cluster: Cluster) -> None:
    result = send("t", "--format", "csv", "--key-field", "x", input=b"a,b\n1,2\n")
    assert (result.status, result.out) == (1, "")
    assert result.err == "Error: standard input: there is no column 'x' for the key; there are a, b\n"


def test_a_producer_that_fails(send: Run, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the input is kept, too."""
    take = Shipment._take

    async def fail_at_b(self: Shipment, item: Any) -> None:
        if item.raw == b"b":
            await self._producer.close(0)
        await take(self, item)

    monkeypatch.setattr(Shipment, "_take", fail_at_b)
    failed = tmp_path / "failed"
    result = send("t", "--failed", failed, "-X", "linger.ms=10000", input=b"a\nb\nc\n")
    assert result.status == 1
    assert f"The rest of the input goes to {failed}" in result.err
    assert sorted(failed.read_bytes().split()) == [b"a", b"b", b"c"]
    assert cluster.values("t") == []


# On a terminal, and interrupted


def test_a_progress_bar_on_a_terminal(run_on_terminal: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_bytes(b"x" * 50 + b"\n" * 20_000)
    result = run_on_terminal("send", "t", file, "--bootstrap-server", cluster.servers)
    assert result.status == 0
    assert "━" in result.out
    assert f"Sending {file}" in result.out
    assert re.search(r"records +20,000", result.out)


def line_with(stream: IO[bytes] | None, text: bytes) -> bytes:
    assert stream is not None
    for line in stream:
        if text in line:
            return line
    raise AssertionError(f"no line with {text!r} came")


def test_ctrl_c_delivers_what_was_read(start_process: Start, cluster: Cluster) -> None:
    process = start_process(
        "send", "t", "--bootstrap-server", cluster.servers, "-X", "linger.ms=60000", "-X", "delivery.timeout.ms=120000"
    )
    assert process.stdin is not None
    process.stdin.write(b"a\nb\nc")  # the third is not at its end
    process.stdin.flush()
    # From outside, only a full batch shows that lines were read: linger keeps the others.
    process.stdin.write(b"\n" + b"x" * 20_000 + b"\n")
    process.stdin.flush()
    cluster.wait_for("t", 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert cluster.values("t") == [b"a", b"b", b"c", b"x" * 20_000]
    assert facts(out.decode())["records"] == "4"
    assert err.decode().splitlines() == [
        "Delivering what was read; a second Ctrl-C stops that.",
        "Interrupted after line 4: the rest of the input was not sent.",
    ]


def test_a_second_ctrl_c_gives_up_and_keeps_what_was_not_delivered(
    start_process: Start, start_cluster: Callable[..., Cluster], requests: Requests, tmp_path: Path
) -> None:
    cluster = start_cluster(nodes=2, configs={"min.insync.replicas": 2})
    cluster.create_topic("t", replication_factor=2)
    cluster.stop_node(1)  # so that nothing can be delivered
    failed = tmp_path / "failed"
    process = start_process("send", "t", "--failed", failed, "--bootstrap-server", cluster.servers)
    assert process.stdin is not None
    process.stdin.write(b"a\nb\n")
    process.stdin.close()
    process.stdin = None
    requests.wait_for(ApiKey.PRODUCE)
    process.send_signal(signal.SIGTERM)
    line_with(process.stderr, b"Delivering what was read")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err
    assert b"2 records not delivered:" in err
    assert failed.read_bytes() == b"a\nb\n"
    assert {reason["outcome"] for reason in reasons(failed)} <= {"not_sent", "unknown"}


def test_ctrl_c_while_nothing_can_be_reached(start_process: Start, closed_port: str) -> None:
    process = start_process("send", "t", "--bootstrap-server", closed_port)
    line_with(process.stderr, b"cannot be reached")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"Interrupted after line 0" in err
