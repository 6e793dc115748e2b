from __future__ import annotations

import gzip
import lzma
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path

import pytest

from aioproducer.broker import Partition
from aioproducer.broker.faults.faults import AppendFault, Faults
from aioproducer.cli.byte_source import ByteSource
from aioproducer.cli.commands import demo as demo_module
from aioproducer.cli.commands.demo import FLIGHTS, Input
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.reader import PartitionReader, Record
from aioproducer.records.record_batch import RecordBatch
from tests.cli.conftest import Cluster, Requests, Run

Start = Callable[..., "subprocess.Popen[bytes]"]
YEAR = Path(__file__).parents[3] / "examples" / "flights.csv.xz"


def test_the_flights(run: Run) -> None:
    result = run("demo", "--records", 5000)
    assert result.status == 0
    assert result.err == "Sending a week of flights from New York to the embedded broker, 3 nodes\n"
    assert re.search(r"^records +5,000$", result.out, re.MULTILINE)
    assert re.search(r"^acknowledged +within .* ms \(p50\), .* ms \(p99\)$", result.out, re.MULTILINE)
    last = result.out.splitlines()[-1]
    assert re.fullmatch(r"Every record arrived once and in order: 5,000 records with [\d,]+ keys in 6 partitions", last)


def test_all_the_flights(run: Run) -> None:
    """Those of the package are the first of the year's, which the repository has."""
    week = lzma.decompress((files("aioproducer.cli") / FLIGHTS).read_bytes())
    with lzma.open(YEAR) as year:
        assert year.read(len(week)) == week
        assert year.readline().startswith(b"2013,1,8,")
    result = run("demo")
    assert result.status == 0
    assert "Every record arrived once and in order: 6,099 records with " in result.out


def test_the_column_that_is_the_key(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(b'id,"the name",at\r\n1,b,x\r\n2,"a, b",\xff\r\n3,b,"y ""y"""\r\n4,,z')
    result = run("demo", file, "--key-field", "the name")
    assert (result.status, result.err) == (0, f"Sending {file} to the embedded broker, 3 nodes\n")
    assert "Every record arrived once and in order: 4 records with 2 keys in 6 partitions" in result.out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n", "there is no column 'key' for the key; there are a, b"),
        (b"a,key\n1,2\n3\n", "a line has no column 'key': 3"),
        (b'a,key\n"1\n', 'invalid CSV, unexpected end of data: "1'),
        (b'"a\n', 'invalid CSV, unexpected end of data: "a'),
        (b"a,\x1b[2J\n", "there is no column 'key' for the key; there are a, \\x1b[2J"),
    ],
)
def test_a_file_without_that_column(run: Run, tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "x.csv"
    file.write_bytes(content)
    result = run("demo", file, "--key-field", "key")
    assert result.status == 1
    assert result.err.splitlines()[-1].startswith("Error: ")
    assert result.err.splitlines()[-1].endswith(message)
    assert "Every record arrived" not in result.out


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [
        ("empty", b"", "0 records"),
        ("x", b"no newline at the end", "1 record"),
        ("x", b"a\nb\n", "2 records"),
        ("x", b"\xff\xfe\x00\n\n\r\n\x80", "4 records"),
        ("x.gz", gzip.compress(b"a\nb\nc"), "3 records"),
        ("x.csv", b"a,b\n1,2\n", "2 records"),
    ],
)
def test_any_file_of_lines(run: Run, tmp_path: Path, name: str, content: bytes, count: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    result = run("demo", file, "--partitions", 2)
    assert result.status == 0
    assert result.out.splitlines()[-1] == f"Every record arrived once and in order: {count} in 2 partitions"


def test_standard_input(run: Run) -> None:
    result = run("demo", "-", "--partitions", 1, input=b"a\na\na")
    assert result.status == 0
    assert "3 records in 1 partition" in result.out


def test_quiet(run: Run) -> None:
    result = run("demo", "--records", 10, "--quiet")
    assert (result.status, result.out, result.err) == (0, "", "")


@pytest.mark.parametrize("limit", [0, 1, 7])
async def test_a_limit(tmp_path: Path, limit: int) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"number\n" + b"".join(b"%d\r\n" % number for number in range(10)))
    what = Input(ByteSource(str(file)), key_field="number")
    assert [line for lines in [lines async for lines in what.lines(limit)] for line in lines] == [
        b"%d" % number for number in range(limit)
    ]


@pytest.mark.parametrize("configs", [["compression.type=gzip"], ["acks=1", "linger.ms=0"], ["batch.size=1"]])
def test_with_other_configs(run: Run, configs: list[str]) -> None:
    overrides = [argument for config in configs for argument in ("-X", config)]
    assert run("demo", "--records", 200, *overrides).status == 0


def test_against_a_cluster_that_is_there(run: Run, cluster: Cluster) -> None:
    result = run("demo", "--records", 100, "--bootstrap-server", cluster.servers)
    assert result.status == 0
    assert result.err == f"Sending a week of flights from New York to {cluster.servers}\n"
    assert cluster.topics() == ["t"]


# The proof can fail: the reader returns other records than the log has.


def missing(records: list[Record]) -> list[Record]:
    return [record._replace(offset=offset) for offset, record in enumerate(records[:3] + records[4:])]


def doubled(records: list[Record]) -> list[Record]:
    return [record._replace(offset=offset) for offset, record in enumerate(records[:3] + records[2:])]


def changed(records: list[Record]) -> list[Record]:
    return [*records[:3], records[3]._replace(value=b"changed"), *records[4:]]


def swapped(records: list[Record]) -> list[Record]:
    return [*records[:3], records[4]._replace(offset=3), records[3]._replace(offset=4), *records[5:]]


@pytest.mark.parametrize(
    ("spoil", "sentences"),
    [
        (
            missing,
            ["10 records were sent and 9 read", "partition 0: 1 record is missing, first number 3 of those sent"],
        ),
        (
            doubled,
            [
                "10 records were sent and 11 read",
                "partition 0: 1 record is in the log more often than sent, first at offset 3",
            ],
        ),
        (
            changed,
            [
                "partition 0: 1 record is missing, first number 3 of those sent",
                "partition 0: 1 record is in the log but never sent, first at offset 3",
            ],
        ),
        (swapped, ["partition 0: 2 records are not in the order of sending, first at offset 3"]),
    ],
)
def test_differences_are_reported(
    run: Run,
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[list[Record]], list[Record]],
    sentences: list[str],
) -> None:
    class Spoiled(PartitionReader):
        async def read_to_end(self) -> AsyncIterator[Record]:
            for record in spoil([record async for record in super().read_to_end()]):
                yield record

    monkeypatch.setattr(demo_module, "PartitionReader", Spoiled)
    result = run("demo", "--records", 10, "--partitions", 1, "--bootstrap-server", cluster.servers)
    assert result.status == 1
    assert "Every record arrived" not in result.out
    *reported, left = result.err.splitlines()[1:]
    assert reported == sentences
    topic = cluster.topics()[0]
    assert left == f"Topic {topic} is left for you to look at."
    assert len(cluster.values(topic)) == 10


class AppendsAndSaysItFailed(Faults):
    """Every third batch is appended and answered with an error, so that it is sent again."""

    def __init__(self) -> None:
        self._count = 0

    def on_append(
        self, node_id: int, partition: Partition, batch: RecordBatch, client_id: str | None
    ) -> AppendFault | None:
        self._count += 1
        if self._count % 3:
            return None
        return AppendFault(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, appended=True)


def test_a_cluster_that_makes_trouble(run: Run, start_cluster: Callable[..., Cluster]) -> None:
    cluster = start_cluster(nodes=2, faults=AppendsAndSaysItFailed())
    trouble = ("--records", 500, "--bootstrap-server", cluster.servers, "-X", "retry.backoff.ms=1", "-X", "linger.ms=0")
    result = run("demo", *trouble)
    assert result.status == 0
    assert "Every record arrived once and in order: 500 records" in result.out


def test_without_idempotence_the_same_trouble_doubles_records_and_is_found(
    run: Run, start_cluster: Callable[..., Cluster]
) -> None:
    cluster = start_cluster(faults=AppendsAndSaysItFailed())
    trouble = ("--records", 500, "--bootstrap-server", cluster.servers, "-X", "retry.backoff.ms=1", "-X", "linger.ms=0")
    result = run("demo", *trouble, "-X", "enable.idempotence=false")
    assert result.status == 1
    assert "Every record arrived" not in result.out
    assert re.search("500 records were sent and [0-9]{3,4} read", result.err)
    assert "in the log more often than sent" in result.err


def test_records_that_are_not_delivered(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"a\n" + b"x" * 2000 + b"\n")
    result = run("demo", file, "-X", "max.request.size=1000")
    assert result.status == 1
    assert "1 record not delivered:" in result.err
    assert "RecordTooLargeException" in result.err
    assert "Every record arrived" not in result.out


# Bad input


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["nosuch.txt"], "Error: nosuch.txt: No such file or directory", 1),
        (["-X", "lingr.ms=1"], "Error: unknown producer config 'lingr.ms'; did you mean 'linger.ms'?", 2),
        (["--config", "nosuch.properties"], "Error: nosuch.properties: No such file or directory", 1),
    ],
)
def test_mistakes_are_lines(run: Run, arguments: list[str], message: str, status: int) -> None:
    result = run("demo", *arguments)
    assert (result.status, result.out) == (status, "")
    assert result.err.splitlines()[-1] == message


def test_no_broker(run: Run, closed_port: str) -> None:
    result = run("demo", "--bootstrap-server", closed_port, "-X", "max.block.ms=100")
    assert (result.status, result.out) == (1, "")
    assert "Error: TimeoutException: creating topics: not done within" in result.err


def test_a_broken_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.gz"
    file.write_bytes(b"no gzip")
    result = run("demo", file)
    assert result.status == 1
    assert f"Error: {file}: cannot be decompressed" in result.err


def test_bars_on_a_terminal(run_on_terminal: Run) -> None:
    result = run_on_terminal("demo", "--records", 3000)
    assert result.status == 0
    assert "Sending" in result.out
    assert "Reading back" in result.out
    assert "━" in result.out


def test_ctrl_c(start_process: Start, cluster: Cluster, requests: Requests) -> None:
    process = start_process("demo", "-", "--bootstrap-server", cluster.servers)
    requests.wait_for(ApiKey.CREATE_TOPICS)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err.splitlines()[-1] == b"Interrupted."
    assert b"Traceback" not in err
    assert cluster.topics() == ["t"]
