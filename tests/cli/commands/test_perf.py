from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from aioproducer.cli.commands.perf import repeated
from aioproducer.testing.kafka.kafka_libs import DEFAULT_VERSION, KafkaUnavailable, fetch_kafka
from aioproducer.testing.kafka.kafka_tools import KafkaTools
from tests.cli.conftest import Cluster, Run

NEEDED = ("--topic", "t", "--num-records", "10", "--throughput", "-1", "--record-size", "5")


@pytest.fixture
def perf(run: Run, cluster: Cluster) -> Run:
    """``perf(...)`` of topic t, all the speed there is, in the cluster."""
    server = ("--bootstrap-server", cluster.servers)
    return lambda *args: run("perf", "--topic", "t", "--throughput", "-1", *server, *args)


# What is sent


def test_random_letters(perf: Run, cluster: Cluster) -> None:
    result = perf("--num-records", 200, "--record-size", 30)
    assert result.status == 0
    values = cluster.values("t")
    assert len(values) == 200
    assert all(re.fullmatch(rb"[A-Z]{30}", value) for value in values)
    assert len(set(values)) > 150
    assert result.out.startswith("200 records sent, ")
    assert result.err == ""


def test_counting(perf: Run, cluster: Cluster) -> None:
    assert perf("--num-records", 12, "--payload-monotonic").status == 0
    assert cluster.values("t") == [str(number).encode() for number in range(12)]


def test_records_of_a_file(perf: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "payload"
    file.write_bytes("ein\nzwei\n\nfünf\n".encode())
    result = perf("--num-records", 100, "--payload-file", file)
    assert result.out.splitlines()[:2] == [f"Reading payloads from: {file}", "Number of records read: 4"]
    assert set(cluster.values("t")) == {b"ein", b"zwei", b"", "fünf".encode()}


def test_delimiter(perf: Run, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "payload").write_bytes(b"a|b\nc")
    perf("--num-records", 50, "--payload-file", tmp_path / "payload", "--payload-delimiter", "|")
    assert set(cluster.values("t")) == {b"a", b"b\nc"}


def test_throughput_is_kept_to(run: Run, cluster: Cluster) -> None:
    server = ("--bootstrap-server", cluster.servers)
    out = run("perf", "--topic", "t", "--num-records", 100, "--record-size", 1, "--throughput", 1000, *server).out
    rate = re.search(r"([\d.]+) records/sec", out)
    assert rate is not None
    assert float(rate[1]) < 1100  # never faster; how much slower is the machine's affair
    assert len(cluster.values("t")) == 100


def test_transactions(perf: Run, cluster: Cluster) -> None:
    result = perf("--num-records", 50, "--record-size", 5, "--transactional-id", "mine", "--transaction-duration-ms", 1)
    assert result.status == 0
    assert committed(cluster) == 50


def test_a_transaction_duration_is_enough(perf: Run, cluster: Cluster) -> None:
    assert perf("--num-records", 5, "--record-size", 5, "--transaction-duration-ms", 60_000).status == 0
    assert committed(cluster) == 5


def committed(cluster: Cluster) -> int:
    """How many records there are, if there are markers of transactions as well."""
    records = len(cluster.values("t"))
    return records if records < cluster.end_offset("t") else 0


# Configs


def test_several_values_after_one_option() -> None:
    assert repeated(["--command-property", "a=1", "b=2", "--topic", "t", "c"]) == [
        *("--command-property", "a=1", "--command-property", "b=2", "--topic", "t", "c"),
    ]
    assert repeated(["--producer-props", "a=1", "--producer-props", "b=2", "c=3"]) == [
        *("--producer-props", "a=1", "--producer-props", "b=2", "--producer-props", "c=3"),
    ]


def test_configs_of_kafka_users(perf: Run, cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "producer.properties"
    serializer = "org.apache.kafka.common.serialization.StringSerializer"
    file.write_text(f"value.serializer={serializer}\ncompression.type=lz4\nbootstrap.servers=localhost:1\n")
    more = ("--command-property", "client.id=me", "compression.type=gzip", "--print-metrics")
    result = perf("--num-records", 3, "--record-size", 5, "--command-config", file, *more)
    assert result.status == 0
    assert "producer-metrics:record-send-total:{client-id=me}" in result.out
    assert len(cluster.values("t")) == 3


def test_older_names(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "p").write_text("linger.ms=0\n")
    props = ("--producer-props", f"bootstrap.servers={cluster.servers}", "acks=1", "--producer.config", tmp_path / "p")
    assert run("perf", *NEEDED, *props).status == 0


# What goes wrong


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--num-records", "0"], "--num-records"),
        (["--record-size", "0"], "--record-size"),
        (["--throughput", "0"], "--throughput"),
        (["--throughput", "fast"], "--throughput"),
        (["--warmup-records", "10"], "must be fewer than --num-records"),
        (["--payload-monotonic"], "exactly one of --record-size, --payload-file and --payload-monotonic"),
        (["--payload-delimiter", ""], "must not be empty"),
        (["--transaction-duration-ms", "0"], "--transaction-duration-ms"),
        (["--reporting-interval", "0"], "--reporting-interval"),
        (["--command-property", "linger.ms"], "'linger.ms' is not NAME=VALUE"),
        (["--command-property", "a=1", "--producer-props", "b=2"], "are one and the same"),
    ],
)
def test_wrong_options(run: Run, arguments: list[str], said: str) -> None:
    result = run("perf", *NEEDED, *arguments)
    assert result.status == 2
    assert said in " ".join(result.err.split())


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        ([], "bootstrap.servers", 2),
        (["--bootstrap-server", "localhost"], "localhost", 2),
        (["--bootstrap-server", "localhost:1", "--command-property", "lingerms=5"], "lingerms", 2),
        (
            ["--bootstrap-server", "localhost:1", "--command-config", "/nowhere"],
            "/nowhere: No such file or directory",
            1,
        ),
    ],
)
def test_wrong_configs(run: Run, arguments: list[str], said: str, status: int) -> None:
    result = run("perf", *NEEDED, *arguments)
    assert result.status == status
    assert result.err.startswith("Error: ")
    assert said in result.err


def test_an_empty_file(perf: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    result = perf("--num-records", 1, "--payload-file", tmp_path / "empty")
    assert (result.status, result.err) == (1, f"Error: {tmp_path / 'empty'} is empty: there is nothing to send\n")


def test_a_topic_that_is_not_there_is_said_once(run: Run, cluster: Cluster) -> None:
    more = ("--bootstrap-server", cluster.servers, "--command-property", "max.block.ms=200")
    result = run("perf", "--topic", "nowhere", *NEEDED[2:], *more)
    assert result.status == 1
    assert result.err.count("nowhere") == 1


def test_records_that_are_not_delivered_are_counted(perf: Run, cluster: Cluster) -> None:
    result = perf("--num-records", 3, "--record-size", 2000, "--command-property", "max.request.size=1000")
    assert result.status == 1
    assert result.out.startswith("0 records sent, ")
    assert result.err.startswith("3 records not delivered: RecordTooLargeException: ")


def test_ctrl_c_ends_it(start_process: Callable[..., subprocess.Popen[bytes]], cluster: Cluster) -> None:
    server = ("--bootstrap-server", cluster.servers)
    slow = ("--num-records", 10**9, "--throughput", 100, "--record-size", 5)
    process = start_process("perf", "--topic", "t", *slow, *server)
    cluster.wait_for("t", 1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert b"Interrupted." in said


# What is said


def shape(line: str) -> str:
    """A line without its figures, but with how many digits they have after the point."""
    return re.sub(r"\d+(?:\.(\d+))?(?!\d*th\b)", lambda found: f"<{len(found[1] or '')}>", line)


def shapes(out: str) -> list[str]:
    """Of a whole output, each kind of line once, in the order in which they come; of metrics the heading alone."""
    text, _, _ = out.partition("Metric Name")
    return list(dict.fromkeys(shape(line.rstrip()) for line in text.splitlines()))


def metric_lines(out: str) -> dict[str, tuple[int, int]]:
    """Of each metric how wide its name is padded, and how many digits its value has after the point."""
    _, _, metrics = out.partition("Metric Name")
    found = re.findall(r"^(\S.*?\})( +: )\d+\.(\d+)$", metrics, re.MULTILINE)
    return {name: (len(name) + len(pad), len(digits)) for name, pad, digits in found}


def with_a_window_of_steady_state(output: Callable[[], str]) -> str:
    """What a tool prints; again if no reporting interval ended in its steady state, as happens on a busy machine.

    Both tools send what they are late with at once, so the records may all be out before the interval is over.
    """
    for _ in range(10):
        if "In steady state." in (printed := output()):
            break
    return printed


def test_output_is_that_of_kafkas_tool(run: Run, cluster: Cluster) -> None:
    options = ["--topic", "t", "--num-records", "600", "--record-size", "50", "--throughput", "400", "--print-metrics"]
    options += ["--warmup-records", "100", "--reporting-interval", "200", "--bootstrap-server", cluster.servers]
    options += ["--command-property", "linger.ms=5", "batch.size=5000"]
    try:
        tools = KafkaTools(fetch_kafka(DEFAULT_VERSION), cluster.servers)
    except KafkaUnavailable as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"NOT CHECKED against Kafka's own tool: {missing}")

    def their_output() -> str:
        return asyncio.run(tools.run("org.apache.kafka.tools.ProducerPerformance", *options)).stdout.decode()

    def our_output() -> str:
        result = run("perf", *options)
        assert result.status == 0
        return result.out

    kafkas, ours = with_a_window_of_steady_state(their_output), with_a_window_of_steady_state(our_output)
    assert set(shapes(ours)) == set(shapes(kafkas))
    assert shapes(ours)[0] == shapes(kafkas)[0]
    assert shapes(ours)[-2:] == shapes(kafkas)[-2:]
    our_metrics, their_metrics = metric_lines(ours), metric_lines(kafkas)
    both = our_metrics.keys() & their_metrics.keys()
    assert len(both) > 50
    for metrics in (our_metrics, their_metrics):
        assert len({width for width, _ in metrics.values()}) == 1
        assert {digits for _, digits in metrics.values()} == {3}
