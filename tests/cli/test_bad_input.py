"""Each mistake of a user and each trouble with a broker: a typed error in plain lines, status 1, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ConfigException, SerializationException, TimeoutException
from tests.cli.conftest import Cluster, Result, Run

LINES = b"one\ntwo\nthree"


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    return tmp_path / "failed"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    path.write_bytes(LINES)
    return path


def check(result: Result, failed: Path, kept: bytes | None, *, outcome: str = "not_sent", cause: str = "") -> None:
    """The status is 1, a few lines say why, and exactly these records are kept."""
    assert result.status == 1
    assert 1 <= len(result.err.splitlines()) <= 6
    if kept is None:
        assert not failed.exists()
        return
    assert failed.read_bytes() == kept
    reasons = [json.loads(line) for line in Path(f"{failed}.reasons.ndjson").read_text().splitlines()]
    assert len(reasons) == kept.count(b"\n")
    assert {(reason["outcome"], reason["cause"]) for reason in reasons} == {(outcome, cause)}


def test_an_unknown_topic(run_process: Run, cluster: Cluster, lines: Path, failed: Path) -> None:
    server = ("--bootstrap-server", cluster.servers)
    result = run_process("send", "nosuch", lines, "--failed", failed, *server, "-X", "max.block.ms=300")
    assert result.out == ""
    assert "Error: TimeoutException: no metadata for topic 'nosuch' within max.block.ms" in result.err
    assert "UNKNOWN_TOPIC_OR_PARTITION" in result.err
    check(result, failed, LINES + b"\n", cause="TimeoutException")


def test_a_topic_name_that_is_not_allowed(run: Run, cluster: Cluster, lines: Path, failed: Path) -> None:
    result = run("send", "no/name", lines, "--failed", failed, "--bootstrap-server", cluster.servers)
    assert "Error: InvalidTopicException" in result.err
    check(result, failed, LINES + b"\n", cause="InvalidTopicException")


def test_an_unknown_partition(run: Run, cluster: Cluster, lines: Path, failed: Path) -> None:
    server = ("--bootstrap-server", cluster.servers)
    result = run("send", "t", lines, "--partition", 1, "--failed", failed, *server)
    assert "topic 't' has 1 partition, from 0 on: there is no 1" in result.err
    check(result, failed, LINES + b"\n", cause="UnknownTopicOrPartitionException")


def test_a_closed_port(run_process: Run, closed_port: str, lines: Path, failed: Path) -> None:
    result = run_process(
        "send", "t", lines, "--failed", failed, "--bootstrap-server", closed_port, "-X", "max.block.ms=300"
    )
    assert result.out == ""
    assert "Error: TimeoutException: no metadata for topic 't' within max.block.ms " in result.err
    assert f"no broker can be reached: cannot connect to {closed_port}" in result.err
    check(result, failed, LINES + b"\n", cause="TimeoutException")


def test_a_port_that_speaks_http(run_process: Run, http_server: str, lines: Path, failed: Path) -> None:
    result = run_process(
        "send", "t", lines, "--failed", failed, "--bootstrap-server", http_server, "-X", "max.block.ms=300"
    )
    assert result.out == ""
    assert "Error: TimeoutException" in result.err
    assert "it looks like an HTTP server" in result.err
    check(result, failed, LINES + b"\n", cause="TimeoutException")


def test_a_record_over_max_request_size(run_process: Run, cluster: Cluster, tmp_path: Path, failed: Path) -> None:
    large = b"x" * 2000
    file = tmp_path / "x"
    file.write_bytes(b"one\n" + large + b"\ntwo\n")
    server = ("--bootstrap-server", cluster.servers)
    result = run_process("send", "t", file, "--failed", failed, *server, "-X", "max.request.size=1000")
    assert cluster.values("t") == [b"one", b"two"]
    assert "not sent: RecordTooLargeException: line 2: " in result.err
    assert "max.request.size=1000" in result.err
    check(result, failed, large + b"\n", cause="RecordTooLargeException")


def test_a_record_that_the_topic_does_not_take(run: Run, cluster: Cluster, tmp_path: Path, failed: Path) -> None:
    cluster.create_topic("small", configs={"max.message.bytes": 500})
    large = b"x" * 2000
    server = ("--bootstrap-server", cluster.servers)
    result = run("send", "small", "--failed", failed, *server, input=large + b"\n")
    assert "not sent: RecordTooLargeException: line 1: " in result.err
    check(result, failed, large + b"\n", cause="RecordTooLargeException")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("lingr.ms=5", "unknown producer config 'lingr.ms'; did you mean 'linger.ms'?"),
        ("acks=2", "config 'acks' is '2'; it must be one of all, -1, 0, 1"),
        ("linger.ms=soon", "config 'linger.ms' is 'soon'; it must be of type long, at least 0"),
        ("sasl.kerberos.kinit.cmd=kinit", "config 'sasl.kerberos.kinit.cmd' is not supported: "),
        ("bootstrap.servers=nowhere", "'nowhere'"),
    ],
)
def test_wrong_configs(run: Run, lines: Path, failed: Path, config: str, message: str) -> None:
    result = run("send", "t", lines, "--failed", failed, "-X", config)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert not failed.exists()


@pytest.mark.parametrize(
    "command",
    [
        ("topics", "list"),
        ("topics", "create", "t"),
        ("perf", "--topic", "t", "--num-records", "1", "--throughput", "-1", "--bootstrap-server", "localhost:1"),
        ("demo",),
    ],
)
def test_a_wrong_config_is_a_wrong_command_line_for_every_command(run: Run, command: tuple[str, ...]) -> None:
    if command[0] == "perf":
        command = (*command, "--record-size", "1")
    name = "--command-property" if command[0] == "perf" else "-X"
    for config in ("lingr.ms=5", "security.protocol=SASL_SSL"):
        result = run(*command, name, config)
        assert (result.status, result.out) == (2, ""), result
        assert config.partition("=")[0] in result.err or "sasl.mechanism" in result.err


@pytest.mark.conformance
@pytest.mark.spark
def test_a_wrong_config_of_an_audit_is_refused_before_spark_starts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("aioproducer.spark.audit.session.audit_session", lambda *given: pytest.fail("Spark starts"))
    result = run("audit", "t", "--output", tmp_path / "audit", "-X", "lingr.ms=5", "--bootstrap-server", "localhost:1")
    assert (result.status, result.out) == (2, ""), result
    assert "lingr.ms" in result.err
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"linger.ms=\\uzzzz\n", "not a .properties text"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"lingr.ms=1\n", "did you mean 'linger.ms'"),
    ],
)
def test_a_bad_properties_file(
    run: Run, tmp_path: Path, lines: Path, failed: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "bad.properties"
    file.write_bytes(content)
    result = run("send", "t", lines, "--failed", failed, "--config", file)
    assert (result.status, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert not failed.exists()


@pytest.mark.parametrize("arguments", [["nosuch.txt"], ["-", "--config", "nosuch.txt"]])
def test_a_missing_file(run_process: Run, failed: Path, arguments: list[str]) -> None:
    result = run_process("send", "t", *arguments, "--failed", failed)
    assert (result.out, result.err) == ("", "Error: nosuch.txt: No such file or directory\n")
    check(result, failed, None)


def test_a_place_for_failed_records_that_is_not_there(run: Run, lines: Path, tmp_path: Path) -> None:
    failed = tmp_path / "nosuch" / "failed"
    result = run("send", "t", lines, "--failed", failed)
    assert (result.out, result.err) == ("", f"Error: {failed}: No such file or directory\n")
    check(result, failed, None)


def test_invalid_json(run_process: Run, cluster: Cluster, failed: Path) -> None:
    arguments = ("--format", "ndjson", "--failed", failed, "--bootstrap-server", cluster.servers)
    result = run_process("send", "t", *arguments, input=b'{"a": 1}\n{"a": }\nnull\n')
    assert cluster.values("t") == [b'{"a": 1}', b"null"]
    assert "not sent: invalid JSON: line 2: Expecting value" in result.err
    check(result, failed, b'{"a": }\n', cause="invalid JSON")


# What only those can do wrong who write programs


@pytest.mark.parametrize("value", [42, "text", ["list"], object()])
async def test_a_value_of_the_wrong_type(value: Any) -> None:
    async with EmbeddedCluster() as cluster, KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        with pytest.raises(SerializationException, match=type(value).__name__):
            await producer.send("t", value)
        with pytest.raises(SerializationException, match=type(value).__name__):
            await (await producer.enqueue("t", key=value))


async def test_the_same_troubles_for_programs(closed_port: str) -> None:
    with pytest.raises(ConfigException, match=r"did you mean 'linger\.ms'"):
        KafkaProducer(bootstrap_servers=closed_port, lingr_ms=1)  # type: ignore[call-arg]
    async with KafkaProducer(bootstrap_servers=closed_port, max_block_ms=1000) as producer:
        with pytest.raises(TimeoutException, match="no broker can be reached"):
            await producer.send("t", b"x")
