"""Tasks whose input breaks off in the middle, in each of the ways in which Spark ends a task before its last row.

A worker that writes does not see why: Spark closes its socket, and the rows seem to have ended. All trouble is made
when the worker has read some rows; and an attempt begins when the one before it has ended, because it would fence it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.foreign import values
from tests.support.polling import until

pytestmark = pytest.mark.conformance

ROWS = 1000
"""Of each of two tasks, of 1000 bytes each, so that they do not stay in a buffer on their way."""

EXACTLY_ONCE = {"deliveryGuarantee": "exactly-once", "writeId": "w"}
BROKE_OFF = re.compile(r"InputBrokeOffException: epoch 0.*, partition [01], .*: the input broke off after [1-9]00 rows")


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(2, configs={"auto.create.topics.enable": "false"}) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: ThreadedCluster, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.translate(str.maketrans("[]", "__"))
    cluster.create_topic(name, 1)
    return name


@pytest.fixture
def session(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """Spark with batches of 100 rows, and with the sink under the name ``observed``."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    spark.dataSource.register(observed(tmp_path))
    yield spark
    (tmp_path / "released").touch()
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


# What is local to functions is pickled with them: Spark's workers cannot import this file.


def awaiting() -> Callable[[Path], Path]:
    def wait(file: Path) -> Path:
        deadline = time.monotonic() + 120
        while not file.exists():
            assert time.monotonic() < deadline, f"{file} has not come"
            time.sleep(0.02)
        return file

    return wait


def wait_for(file: Path) -> Path:
    until(file.exists, f"{file} has not come", timeout=120)
    return file


def observed(directory: Path) -> type:
    """The sink; ``read-<partition>`` is there when a task has read rows, and ``ended-<partition>-<attempt>`` says how
    an attempt has ended."""
    from aioproducer.spark import AioproducerDataSource
    from aioproducer.spark.writer import BatchWriter, StreamWriter

    wait = awaiting()

    def observe(write: Callable[[Any], Any], batches: Iterator[Any]) -> Any:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        partition, attempt = context.partitionId(), context.attemptNumber()
        if attempt:
            wait(directory / f"ended-{partition}-{attempt - 1}")

        def seen() -> Iterator[Any]:
            for batch in batches:
                (directory / f"read-{partition}").touch()
                yield batch

        draft = directory / f"draft-{partition}-{attempt}"
        try:
            written = write(seen())
            draft.write_text(f"wrote {written.rows}")
        except BaseException as error:
            draft.write_text(f"{type(error).__name__}: {error}")
            raise
        finally:
            draft.rename(directory / f"ended-{partition}-{attempt}")
        return written

    class ObservedBatch(BatchWriter):
        def write(self, iterator: Any) -> Any:
            return observe(super().write, iterator)

    class ObservedStream(StreamWriter):
        def write(self, iterator: Any) -> Any:
            return observe(super().write, iterator)

    class Observed(AioproducerDataSource):
        @classmethod
        def name(cls) -> str:
            return "observed"

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return ObservedBatch.of(self.options, schema, overwrite)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return ObservedStream.of(self.options, schema, overwrite)

    return Observed


def troubled(frame: Any, directory: Path, trouble: str) -> Any:
    """The frame, with trouble when half of the rows of a task have been handed on.

    ``raises`` and ``dies``: in the first attempt of task 0. ``waits``: every task, until the test has ended.
    ``sibling``: task 0 waits, and each attempt of task 1 fails.
    """
    wait = awaiting()

    def upstream(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import signal

        from pyspark import TaskContext

        context: Any = TaskContext.get()
        task, first = context.partitionId(), context.attemptNumber() == 0
        for number, batch in enumerate(batches):
            yield batch
            if number != 4:
                continue
            if trouble in ("raises", "dies") and task == 0 and first:
                wait(directory / "read-0")
                if trouble == "dies":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise ConnectionError("the first attempt fails")
            if trouble == "sibling" and task == 1:
                wait(directory / "read-0")
                raise ConnectionError("every attempt fails")
            while trouble in ("waits", "sibling") and not (directory / "released").exists():
                yield batch.slice(0, 0)  # Spark looks whether the task was killed when something comes
                time.sleep(0.02)

    return frame.mapInArrow(upstream, frame.schema)


def numbers(session: Any, value: str = "id") -> Any:
    return session.range(0, 2 * ROWS, 1, 2).selectExpr(f"rpad(CAST({value} AS STRING), 1000, '.') AS value")


def save(cluster: ThreadedCluster, frame: Any, topic: str, options: dict[str, str], sink: str = "observed") -> None:
    places = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": topic}
    frame.write.format(sink).options(**places, **options).mode("append").save()


def found(cluster: ThreadedCluster, topic: str) -> list[int]:
    return sorted(int(value.rstrip(".")) for value in values(cluster.bootstrap_servers, topic))


def ended(directory: Path, partition: int, attempt: int) -> str:
    return wait_for(directory / f"ended-{partition}-{attempt}").read_text()


@pytest.mark.parametrize("trouble", ["raises", "dies"])
@pytest.mark.parametrize("options", [EXACTLY_ONCE, {}], ids=["exactly-once", "at-least-once"])
def test_an_upstream_error_in_one_attempt(
    session: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path, trouble: str, options: dict[str, str]
) -> None:
    save(cluster, troubled(numbers(session), tmp_path, trouble), topic, options)
    assert BROKE_OFF.match(ended(tmp_path, 0, 0))
    assert [ended(tmp_path, 0, 1), ended(tmp_path, 1, 0)] == [f"wrote {ROWS}"] * 2
    rows = found(cluster, topic)
    assert (rows if options else sorted(set(rows))) == list(range(2 * ROWS))


def test_an_expression_that_fails_in_every_attempt(
    session: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path
) -> None:
    bad = numbers(session, "IF(id = 750, raise_error('a bad row'), id)")
    with pytest.raises(Exception, match="a bad row"):
        save(cluster, bad, topic, EXACTLY_ONCE)
    for attempt in range(4):
        assert BROKE_OFF.match(ended(tmp_path, 0, attempt))
    ended(tmp_path, 1, 0)
    assert found(cluster, topic) == [], "nor any of the other task"
    save(cluster, numbers(session), topic, EXACTLY_ONCE, "aioproducer")
    assert found(cluster, topic) == list(range(2 * ROWS))


def test_a_sibling_that_fails_for_good(session: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="every attempt fails"):
        save(cluster, troubled(numbers(session), tmp_path, "sibling"), topic, EXACTLY_ONCE)
    for partition, attempt in ((0, 0), (1, 0), (1, 1), (1, 2), (1, 3)):
        assert BROKE_OFF.match(ended(tmp_path, partition, attempt))
    assert found(cluster, topic) == []
    save(cluster, numbers(session), topic, EXACTLY_ONCE, "aioproducer")
    assert found(cluster, topic) == list(range(2 * ROWS))


def test_jobs_that_are_cancelled(session: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path) -> None:
    def cancel() -> None:
        for task in range(2):
            wait_for(tmp_path / f"read-{task}")
        session.sparkContext.cancelAllJobs()

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    with pytest.raises(Exception, match=r"(?i)cancel"):
        save(cluster, troubled(numbers(session), tmp_path, "waits"), topic, EXACTLY_ONCE)
    cancelling.join()
    assert all(BROKE_OFF.match(ended(tmp_path, task, 0)) for task in range(2))
    assert found(cluster, topic) == []
    save(cluster, numbers(session), topic, EXACTLY_ONCE, "aioproducer")
    assert found(cluster, topic) == list(range(2 * ROWS))


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("trouble", ["raises", "waits"])
def test_a_query_that_is_stopped_or_fails_once(
    session: Any, cluster: ThreadedCluster, topic: str, tmp_path: Path, trouble: str, guarantee: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.txt").write_text("\n".join(str(row).ljust(1000, ".") for row in range(ROWS)))

    def start(trouble: str, sink: str) -> Any:
        lines = session.readStream.format("text").load(str(tmp_path / "in"))
        options = {"topic": topic, "deliveryGuarantee": guarantee, "checkpointLocation": str(tmp_path / "checkpoint")}
        writer = troubled(lines, tmp_path, trouble).writeStream.format(sink).trigger(availableNow=True)
        return writer.option("kafka.bootstrap.servers", cluster.bootstrap_servers).options(**options).start()

    query = start(trouble, "observed")
    if trouble == "waits":
        wait_for(tmp_path / "read-0")
        query.stop()
        assert BROKE_OFF.match(ended(tmp_path, 0, 0))
        assert guarantee == "at-least-once" or found(cluster, topic) == []
        query = start("none", "aioproducer")
    query.awaitTermination()
    assert BROKE_OFF.match(ended(tmp_path, 0, 0))
    rows = found(cluster, topic)
    assert (rows if guarantee == "exactly-once" else sorted(set(rows))) == list(range(ROWS))
