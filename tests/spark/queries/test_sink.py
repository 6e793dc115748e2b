"""The sink as Spark runs it, on the embedded broker; what is written is read by confluent-kafka."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from aioproducer.errors import IllegalStateException
from aioproducer.spark import register, run_job
from aioproducer.spark.exactly_once.prepared import Outcome
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.spark.sink.task import Task
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.foreign import read_committed, values

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(2, configs={"auto.create.topics.enable": "false"}) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: ThreadedCluster, request: pytest.FixtureRequest) -> str:
    """Three partitions, of the test's own."""
    name: str = request.node.name.translate(str.maketrans("[]- ", "____"))
    cluster.create_topic(name, 3)
    return name


def sink(cluster: ThreadedCluster, frame: Any, **more: str) -> Any:
    writer = frame.write.format("aioproducer").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return writer.options(**more).mode("append")


def stream(cluster: ThreadedCluster, frame: Any, checkpoint: Path, **more: str) -> Any:
    writer = frame.writeStream.format("aioproducer").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    return writer.options(**more, checkpointLocation=str(checkpoint)).trigger(availableNow=True)


def failing(frame: Any, when: str) -> Any:
    """Each task of the frame fails at its first attempt: before its first batch, or after it."""

    def fail(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        first = TaskContext.get().attemptNumber() == 0
        if first and when == "before":
            raise LookupError("this attempt fails")
        yield from batches
        if first:
            raise LookupError("this attempt fails")

    return frame.mapInArrow(fail, frame.schema)


def test_a_batch_has_every_column(spark: Any, cluster: ThreadedCluster, topic: str) -> None:
    rows = [
        ("k", b"v", [("h", b"1"), ("h", None)], 2, 1_700_000_000_123),
        (None, None, None, 1, 1_700_000_000_124),
        ("k", b"", [], None, 1_700_000_000_125),
    ]
    schema = "key string, value binary, headers array<struct<key string, value binary>>, partition int, timestamp long"
    frame = spark.createDataFrame(rows, schema).selectExpr(
        "key", "value", "headers", "partition", "timestamp_millis(timestamp) AS timestamp", f"'{topic}' AS topic"
    )
    sink(cluster, frame.coalesce(1)).save()
    found = read_committed(cluster.bootstrap_servers, topic, 3)
    assert {(message.key(), message.value(), str(message.headers()), message.timestamp()[1]) for message in found} == {
        (b"k", b"v", "[('h', b'1'), ('h', None)]", 1_700_000_000_123),
        (None, None, "None", 1_700_000_000_124),
        (b"k", b"", "None", 1_700_000_000_125),
    }
    assert {message.value(): message.partition() for message in found if message.value() != b""} == {b"v": 2, None: 1}


def test_a_job_of_an_event_loop_writes(spark: Any, cluster: ThreadedCluster, topic: str) -> None:
    """In its own thread, in which Spark would find no format of Python's."""
    save = sink(cluster, spark.sql("SELECT 'v' AS value"), topic=topic).save
    asyncio.run(run_job(spark, save))
    assert values(cluster.bootstrap_servers, topic, 3) == ["v"]


@pytest.mark.parametrize("anew", [False, True])
def test_a_thread_that_registers_the_format_writes(
    spark: Any, cluster: ThreadedCluster, topic: str, anew: bool
) -> None:
    def write() -> None:
        session = spark.newSession() if anew else spark
        register(session)
        sink(cluster, session.sql("SELECT 'v' AS value"), topic=topic).save()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(write).result()
    assert values(cluster.bootstrap_servers, topic, 3) == ["v"]


def test_many_rows_of_many_tasks_some_of_them_empty(spark: Any, cluster: ThreadedCluster, topic: str) -> None:
    frame = spark.range(0, 30_000, 1, 3).where("id >= 10000").selectExpr("CAST(id AS STRING) AS value")
    sink(cluster, frame, topic=topic).save()
    assert sorted(values(cluster.bootstrap_servers, topic, 3)) == sorted(map(str, range(10_000, 30_000)))


@pytest.mark.parametrize(
    ("columns", "options", "mode", "message"),
    [
        ("id AS value", {"topic": "t"}, "append", 'column "value" is bigint; it must be string or binary'),
        ("'v' AS value", {"topic": "t"}, "overwrite", "cannot be overwritten, only appended to"),
        ("'v' AS value", {"topic": "t", "deliveryGuarantee": "exactly-once"}, "append", 'needs option "writeId"'),
    ],
)
def test_an_unusable_frame_or_option_is_an_error_before_a_task_runs(
    spark: Any, cluster: ThreadedCluster, columns: str, options: dict[str, str], mode: str, message: str
) -> None:
    from pyspark.errors import PySparkException

    frame = spark.range(3).selectExpr(*columns.split(", "))
    with pytest.raises(PySparkException, match=f"(?s)PYTHON_DATA_SOURCE_ERROR.*{message}"):
        sink(cluster, frame, **options).mode(mode).save()


def test_a_row_that_cannot_be_written_is_named_with_its_partition(
    spark: Any, cluster: ThreadedCluster, topic: str
) -> None:
    from pyspark.errors import PySparkException

    value = "CASE WHEN id = 17 THEN repeat('x', 2000000) ELSE 'v' END AS value"
    frame = spark.range(0, 20, 1, 2).selectExpr(value)
    with pytest.raises(PySparkException, match=r"partition 1, attempt 3, row 7, to topic .*RecordTooLargeException"):
        sink(cluster, frame, topic=topic, deliveryGuarantee="exactly-once", writeId="large").save()
    assert values(cluster.bootstrap_servers, topic, 3) == [], "nor any of the other task"


@pytest.mark.parametrize("when", ["before", "after"])
def test_tasks_that_fail_write_once(
    spark: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path, when: str
) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = "\n".join(str(row) for row in range(number * 1000, number * 1000 + 1000))
        (tmp_path / "in" / f"{number}.txt").write_text(lines)
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
    frame = failing(lines, when)
    query = stream(cluster, frame, tmp_path / "checkpoint", topic=topic, deliveryGuarantee="exactly-once").start()
    query.awaitTermination()
    assert sorted(values(cluster.bootstrap_servers, topic, 3)) == sorted(map(str, range(3000)))


def test_epochs_without_any_partition_are_followed_by_others(
    spark: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path
) -> None:
    """Spark makes no partition of an empty file, and then one for the sink."""
    (tmp_path / "in").mkdir()
    for number, text in enumerate(["", "one", "", "", "two"]):
        file = tmp_path / "in" / f"{number}.txt"
        file.write_text(text)
        os.utime(file, (1000 + number, 1000 + number))
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
    query = stream(cluster, lines, tmp_path / "checkpoint", topic=topic, deliveryGuarantee="exactly-once").start()
    query.awaitTermination()
    assert sorted(values(cluster.bootstrap_servers, topic, 3)) == ["one", "two"]
    assert cluster.committed_offsets(f"aioproducer-{query.id}-all") == {(topic, 0): 4}


def test_an_epoch_whose_tasks_have_not_all_reported_is_not_committed(spark: Any) -> None:
    """``spark`` skips this where there is no Spark."""
    from aioproducer.spark.writer import SinkWrite, Written

    given = {
        "topic": "t",
        "deliveryGuarantee": "exactly-once",
        "writeId": "w",
        "kafka.bootstrap.servers": "127.0.0.1:1",
    }
    write = SinkWrite(SinkOptions.of(given, streaming=False), {"value": "value"}, streaming=False)
    written = Written(Task("w", 0, 0), 1, Outcome(0, 1, "00", None))
    for messages in ([], [None], [written, None]):
        with pytest.raises(IllegalStateException, match=r"Spark has handed over \[.*nothing was committed"):
            write.commit(messages)


def test_a_batch_with_the_same_id_is_written_once(spark: Any, cluster: ThreadedCluster, topic: str) -> None:
    """Its rows name their topics; markers go with a third one."""
    places = (topic, f"{topic}-other")
    cluster.create_topic(places[1], 3)
    cluster.create_topic(f"{topic}-markers", 1)
    where = f"IF(id % 3 = 0, '{places[0]}', '{places[1]}') AS topic"
    frame = spark.range(0, 2000, 1, 2).selectExpr("CAST(id AS STRING) AS value", where)
    options = {"deliveryGuarantee": "exactly-once", "markerTopic": f"{topic}-markers"}
    for write_id in ("one", "one", "two"):
        sink(cluster, frame, **options, writeId=write_id).save()
    found = [value for place in places for value in values(cluster.bootstrap_servers, place, 3)]
    assert sorted(found) == sorted([str(number) for number in range(2000)] * 2)
    assert cluster.committed_offsets("aioproducer-one-1") == {(f"{topic}-markers", 0): 0}


def test_batches_of_a_stream_are_written_once_under_one_name(
    spark: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path
) -> None:
    """foreachBatch: the query fails when its second batch was written, and before Spark knows that it was."""
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.txt").write_text("\n".join(f"{number} {row}" for row in range(100)))
    fails_at = [1]

    def write(batch: Any, epoch: int) -> None:
        options = {"deliveryGuarantee": "exactly-once", "writeId": topic, "writeEpoch": str(epoch)}
        sink(cluster, batch, topic=topic, **options).save()
        if epoch in fails_at:
            raise LookupError("written, and not known to be")

    def run() -> None:
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(tmp_path / "in"))
        writer = lines.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(120)

    with pytest.raises(Exception, match="written, and not known to be"):
        run()
    fails_at.clear()
    run()
    expected = sorted(f"{number} {row}" for number in range(3) for row in range(100))
    assert sorted(values(cluster.bootstrap_servers, topic, 3)) == expected
    assert cluster.committed_offsets(f"aioproducer-{topic}-all") == {(topic, 0): 2}


@pytest.mark.parametrize("when", ["written", "decided"])
@pytest.mark.parametrize(
    "partitions", [pytest.param(3, id="", marks=pytest.mark.long), pytest.param(2, id="other partitions")]
)
def test_a_driver_that_is_killed(
    spark: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path, when: str, partitions: int
) -> None:
    """The next driver, whose query may have other partitions by then, takes up what this one has decided, and nothing
    else."""
    from .killed_driver import run_query

    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.txt").write_text("\n".join(f"{number} {row}" for row in range(500)))
    servers = cluster.bootstrap_servers
    arguments = [sys.executable, str(Path(__file__).with_name("killed_driver.py")), servers, topic, str(tmp_path), when]
    killed = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-4000:]
    assert values(servers, topic, 3) == []
    assert not list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    run_query(spark, "aioproducer", servers, topic, tmp_path, partitions)
    expected = sorted(f"{number} {row}" for number in range(2) for row in range(500))
    assert sorted(values(servers, topic, 3)) == expected


def closed_port() -> str:
    """An address at which no server listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_an_unreachable_broker_is_one_error_before_any_task(spark: Any, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    options = {"kafka.bootstrap.servers": closed_port(), "kafka.max.block.ms": "500", "topic": "t"}
    frame = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
    with pytest.raises(PySparkException, match="before any task begins") as batch:
        frame.write.format("aioproducer").options(**options).mode("append").save()
    rows = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS value")
    writer = rows.writeStream.format("aioproducer").options(**options)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException, match="before any task begins") as streamed:
        query.awaitTermination()
    for raised in (batch, streamed):
        assert "Task failed" not in str(raised.value)
        assert "TimeoutException" in str(raised.value)
