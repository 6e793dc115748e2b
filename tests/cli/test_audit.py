from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from aioproducer import KafkaProducer
from aioproducer.delivery_log import DeliveryLog
from tests.cli.conftest import Cluster, Run, environment


def test_without_pyspark_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['pyspark'] = None; from aioproducer.cli import main; main()"
    command = [sys.executable, "-c", program, "audit", "t"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 1
    assert done.stderr == (
        "Error: the audit is a Spark job, and pyspark is not installed: pip install 'aioproducer[spark]'\n"
    )


@pytest.mark.conformance
@pytest.mark.timeout(300)
def test_a_record_that_was_acknowledged_and_is_not_there(
    start_cluster: Callable[..., Cluster], run_process: Run, tmp_path: Path
) -> None:
    """200 records, a transaction that is aborted, and a delivery log that tells of one record more."""
    pytest.importorskip("pyspark")
    cluster = start_cluster(configs={"log.message.timestamp.type": "LogAppendTime"})
    cluster.create_topic("orders", 2)
    log = tmp_path / "deliveries.jsonl"

    async def produce() -> None:
        async with KafkaProducer(
            bootstrap_servers=cluster.servers,
            interceptor_classes=DeliveryLog(log, stream_id="s"),
            transactional_id="audited",
        ) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                for number in range(200):
                    _ = producer.send("orders", b"%d" % number, key=b"%d" % (number % 10))
            await producer.begin_transaction()
            _ = producer.send("orders", b"aborted", key=b"1")
            await producer.flush()
            await producer.abort_transaction()

    asyncio.run(produce())
    lost = {"stream": "s", "counter": 202, "time_ms": 1, "topic": "orders", "partition": 1, "offset": 5000}
    with log.open("a") as file:
        file.writelines(json.dumps({"schema": 1, "event": event, **lost}) + "\n" for event in ("sent", "acked"))
    place = tmp_path / "audit"
    result = run_process(
        *("audit", "orders", "--bootstrap-server", cluster.servers, "--delivery-log", log),
        *("--read-committed", "--unique", "--output", place),
    )
    assert result.status == 1, result
    verdict, report = result.out.splitlines()
    assert verdict == "201 records, and found: acknowledged and missing (1)"
    assert report == f"The report is {place / 'report.html'}"
    assert "acknowledged and missing · orders-1@5000 · stream s number 202 · acknowledged at" in result.err
    assert "<svg " in (place / "report.html").read_text()
