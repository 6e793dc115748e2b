"""``aioproducer audit`` in the session of all tests, on the embedded broker: what it says, and its exit status."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.cli.commands.audit import Audit, Start, Wanted, spark_errors
from aioproducer.cli.running import FAILED, InputError, Interrupt
from aioproducer.cli.terminal import Terminal
from aioproducer.records.record_batch import RecordBatch
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.broker.raw_clients.batches import NOW_MS, make_batch
from tests.cli.conftest import environment
from tests.spark.topics import fill
from tests.support.polling import until

pytestmark = pytest.mark.conformance

RECORDS = 20
LOST = 5

DOOMED = """
import asyncio, sys
from aioproducer import KafkaProducer
from aioproducer.metrics_topic import MetricsTopicReporter

async def report():
    reporters = [MetricsTopicReporter("metrics", interval=0.1)]
    async with KafkaProducer(bootstrap_servers=sys.argv[1], client_id="doomed", metric_reporters=reporters):
        await asyncio.sleep(600)

asyncio.run(report())
"""


class Heard(Terminal):
    """A terminal that keeps its lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, text: str, *, style: str = "") -> None:
        self.lines.append(text)

    def note(self, text: str) -> None:
        self.lines.append(text)

    def fail(self, text: str) -> None:
        self.lines.append(text)

    async def wait_for(self, *beginnings: str) -> None:
        """Until there is a line that begins with each of these."""
        while not all(any(line.startswith(text) for line in self.lines) for text in beginnings):  # noqa: ASYNC110 - threads
            await asyncio.sleep(0.02)


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(topics={"orders": 1, "metrics": 1}) as cluster:
        yield cluster


def audit_of(spark: Any, cluster: ThreadedCluster, terminal: Terminal, place: Path | str, **wanted: Any) -> Audit:
    checkpoint = str(Path(str(place).removeprefix("file:")) / "checkpoint")
    more = {
        "delivery_logs": [],
        "metrics_topic": None,
        "read_committed": False,
        "checkpoint": checkpoint,
        **wanted,
    }
    chosen = Wanted(["orders"], output=str(place), start=Start.EARLIEST, every=1, **more)
    return Audit(spark, {"bootstrap.servers": cluster.bootstrap_servers}, chosen, AuditOptions(now_ms=0), terminal)


async def watch(audit: Audit, meanwhile: Coroutine[Any, Any, None]) -> int:
    """The exit status of a watching that Ctrl-C ends when the other is done."""
    interrupt = Interrupt()
    watching, other = asyncio.ensure_future(audit.watch(interrupt)), asyncio.ensure_future(meanwhile)
    await asyncio.wait([watching, other], return_when=asyncio.FIRST_COMPLETED)
    interrupt.came(signal.SIGINT)
    other.cancel()
    return await watching


def lose_some(cluster: EmbeddedCluster) -> None:
    """A batch comes whose producer had sent others before, and the broker does not see that they are not there."""
    log = cluster.log("orders")
    *_, last = log.batches()
    cluster.expire_producers("orders")
    due = last.base_sequence + last.count
    batch = make_batch(b"behind", producer_id=last.producer_id, producer_epoch=0, base_sequence=due + LOST)
    log.append(RecordBatch(batch), leader_epoch=0, now_ms=NOW_MS)


def killed_producer(cluster: ThreadedCluster) -> None:
    """Reports its metrics, and is no more."""
    with subprocess.Popen([sys.executable, "-c", DOOMED, cluster.bootstrap_servers], env=environment()) as producer:
        until(lambda: cluster.end_offset("metrics") > 0 or producer.poll() is not None, "no metrics were reported")
        producer.kill()


@pytest.mark.long
def test_nothing_is_said_of_what_is_in_order(spark: Any, cluster: ThreadedCluster, tmp_path: Path) -> None:
    fill(cluster, "orders", RECORDS)
    heard = Heard()
    audit = audit_of(spark, cluster, heard, tmp_path)
    status = asyncio.run(watch(audit, heard.wait_for(f"{RECORDS} records, 0 findings")))
    assert (status, heard.lines[-1]) == (0, f"{RECORDS} records watched, 0 findings")


@pytest.mark.long
def test_a_gap_and_the_silence_of_a_producer_are_reported(spark: Any, cluster: ThreadedCluster, tmp_path: Path) -> None:
    killed_producer(cluster)
    fill(cluster, "orders", RECORDS)
    heard = Heard()

    async def plant() -> None:
        await heard.wait_for(f"{RECORDS} records, 0 findings")
        cluster.call(lose_some)
        await heard.wait_for(f"gap · orders-0@{RECORDS} · ", "CRITICAL: doomed: reports: no report for ")

    status = asyncio.run(watch(audit_of(spark, cluster, heard, tmp_path, metrics_topic="metrics"), plant()))
    assert (status, heard.lines[-1]) == (FAILED, f"{RECORDS + 1} records watched, 2 findings")
    assert any(line.endswith(f"sequence {RECORDS + LOST} where {RECORDS} was due") for line in heard.lines)
    (found,) = spark.read.parquet(str(tmp_path / "watched-findings.parquet")).collect()
    assert (found.kind, found.records) == ("gap", LOST)


@pytest.mark.long
def test_the_next_watch_follows_the_last(spark: Any, cluster: ThreadedCluster, tmp_path: Path) -> None:
    """What was there before is known, and not watched again."""
    fill(cluster, "orders", RECORDS)
    first, second = Heard(), Heard()
    committed = tmp_path / "checkpoint" / "commits" / "0"

    async def first_is_over() -> None:
        while not committed.exists():  # noqa: ASYNC110 - Spark writes it
            await asyncio.sleep(0.02)

    assert asyncio.run(watch(audit_of(spark, cluster, first, tmp_path), first_is_over())) == 0
    assert first.lines[-1] == f"{RECORDS} records watched, 0 findings"
    cluster.call(lose_some)
    status = asyncio.run(watch(audit_of(spark, cluster, second, tmp_path), second.wait_for("gap · orders-0@")))
    assert (status, second.lines[-1]) == (FAILED, "1 record watched, 1 finding")


def test_an_error_of_sparks_is_one_line(spark: Any, cluster: ThreadedCluster, tmp_path: Path) -> None:
    fill(cluster, "orders", RECORDS)
    missing = audit_of(spark, cluster, Heard(), tmp_path, delivery_logs=[str(tmp_path / "nosuch.jsonl")])
    with (
        pytest.raises(InputError, match=r"^Spark failed: \[PATH_NOT_FOUND\] .*nosuch\.jsonl") as raised,
        spark_errors(),
    ):
        asyncio.run(missing.run())
    assert "\n" not in str(raised.value)
