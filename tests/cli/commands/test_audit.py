from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aioproducer import KafkaProducer
from aioproducer.delivery_log import DeliveryLog, TopicSink
from tests.cli.conftest import COMMAND, Cluster, LoopThread, Run, environment
from tests.spark.quick_start import as_default_configs


def test_without_pyspark_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['pyspark'] = None; from aioproducer.cli import main; main()"
    command = [sys.executable, "-c", program, "audit", "t"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 1
    assert done.stderr == (
        "Error: the audit is a Spark job, and pyspark is not installed: pip install 'aioproducer[spark]'\n"
    )


@pytest.mark.conformance
@pytest.mark.spark
def test_without_java_it_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    nowhere = environment(JAVA_HOME=str(tmp_path / "nosuch"))
    command = [*COMMAND, "audit", "t", "--output", str(tmp_path / "audit")]
    done = subprocess.run(command, capture_output=True, text=True, env=nowhere)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: Spark did not start; it needs Java 17 or newer (JAVA_HOME): [JAVA_GATEWAY_EXITED] ")


async def open_transaction(servers: str) -> KafkaProducer:
    """With one record, of a producer that is still at work."""
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id="open", transaction_timeout_ms=600_000)
    await producer.start()
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send("orders", b"in an open transaction", key=b"1")
    return producer


async def transactions(servers: str, log: Path) -> None:
    """One of 200 records that is committed, one of a single record that is aborted."""
    async with KafkaProducer(
        bootstrap_servers=servers, interceptor_classes=DeliveryLog(log, stream_id="s"), transactional_id="audited"
    ) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            for number in range(200):
                _ = producer.send("orders", b"%d" % number, key=b"%d" % (number % 10))
        await producer.begin_transaction()
        _ = producer.send("orders", b"aborted", key=b"1")
        await producer.flush()
        await producer.abort_transaction()


async def records_with_a_log_in_a_topic(servers: str) -> None:
    """Ten records; the delivery log has one more."""
    lost = {"stream": "u", "counter": 11, "time_ms": 1, "topic": "orders", "partition": 1, "offset": 5000}
    async with KafkaProducer(bootstrap_servers=servers) as carrier:
        log = DeliveryLog(TopicSink(carrier, "deliveries"), stream_id="u")
        async with KafkaProducer(bootstrap_servers=servers, interceptor_classes=log) as producer:
            for number in range(10):
                _ = producer.send("orders", b"u %d" % number, key=b"%d" % number)
        for event in ("sent", "acked"):
            _ = carrier.send("deliveries", json.dumps({"schema": 1, "event": event, **lost}).encode())


@pytest.mark.long
@pytest.mark.conformance
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_record_that_was_acknowledged_and_is_not_there(
    start_cluster: Callable[..., Cluster], loop_thread: LoopThread, run_process: Run, tmp_path: Path
) -> None:
    """… and an open transaction, beyond which no read_committed reader gets."""
    pytest.importorskip("pyspark")
    cluster = start_cluster(configs={"log.message.timestamp.type": "LogAppendTime"})
    cluster.create_topic("orders", 2)
    cluster.create_topic("deliveries")
    log = tmp_path / "deliveries.jsonl"
    asyncio.run(transactions(cluster.servers, log))
    asyncio.run(records_with_a_log_in_a_topic(cluster.servers))
    under_way = loop_thread.run(open_transaction(cluster.servers))
    place = tmp_path / "audit"
    try:
        result = run_process(
            *("audit", "orders", "--bootstrap-server", cluster.servers, "--output", f"file:{place}"),
            *("--delivery-log", log, "--delivery-log", "topic:deliveries"),
            *("--read-committed", "--unique", "--transaction-timeout", 1),
            **as_default_configs(tmp_path),
        )
    finally:
        loop_thread.run(under_way.close())
    assert result.status == 1, result
    verdict, *proved, report = result.out.splitlines()
    assert {line.split(":")[0] for line in proved} <= {"Checked", "Not proved"}
    assert any(line.startswith("Checked") for line in proved)
    assert verdict == "212 records, and found: acknowledged and missing (1), open transaction (1)"
    assert report == f"The report is file:{place}/report.html"
    assert "acknowledged and missing · orders-1@5000 · stream u number 11 · acknowledged at" in result.err
    assert "new uPlot(" in (place / "report.html").read_text(encoding="utf-8")
