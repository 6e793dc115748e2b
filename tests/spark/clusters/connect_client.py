"""Run by test_connect.py in a process of its own: jobs of Spark Connect, driven from an event loop.

Arguments: the bootstrap servers, a topic of one partition, and a directory. A session of Spark Connect decides for its
whole process what Spark's functions make, so that it cannot live beside the session of other tests.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

os.environ["SPARK_TESTING"] = "1"  # the server takes any free port, and the client knows which one
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

import pytest
from pyspark.sql import SparkSession

from aioproducer import KafkaProducer
from aioproducer.errors import IllegalArgumentException
from aioproducer.spark import produce_dataframe, run_job
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.run import audit_topics

servers, topic, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
SENT, WRITTEN = 2500, 10


async def main(spark: Any) -> None:
    assert not hasattr(spark, "_jsparkSession"), "it is no session of Spark Connect"
    numbers = spark.range(0, SENT, 1, 3).selectExpr("CAST(id AS STRING) AS value")
    assert await run_job(spark, numbers.count, description="counted") == SENT
    async with KafkaProducer(bootstrap_servers=servers) as producer:
        result = await produce_dataframe(producer, numbers, topic=topic)
        result.raise_if_failed()
        slow = numbers.limit(1).mapInArrow(slowly, "value string")
        await cancelled(spark, lambda: run_job(spark, slow.count))
        await cancelled(spark, lambda: produce_dataframe(producer, slow, topic=topic))

    more = spark.range(0, WRITTEN, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    options = {"kafka.bootstrap.servers": servers, "deliveryGuarantee": "exactly-once", "writeId": "w", "topic": topic}
    for _ in range(2):
        await run_job(spark, lambda: more.write.format("aioproducer").options(**options).mode("append").save())

    wanted = AuditOptions(now_ms=round(time.time() * 1000))
    audited = {"bootstrap.servers": servers}, [topic]
    with pytest.raises(IllegalArgumentException, match="Spark Connect"):
        await audit_topics(spark, *audited, "s3a://bucket/audit", wanted)
    summary = await audit_topics(spark, *audited, str(directory / "audit"), wanted)
    assert summary.ok, summary.verdict
    assert summary.totals["records"] == SENT + WRITTEN, summary.totals
    assert (directory / "audit" / "report.html").exists()


async def cancelled(spark: Any, job: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Cancels it while its task runs; another job beside it ends as it should."""
    begun = directory / "begun"
    begun.unlink(missing_ok=True)
    task = asyncio.ensure_future(job())
    async with asyncio.timeout(300):
        while not begun.exists():  # noqa: ASYNC110 - a task of Spark's makes it
            await asyncio.sleep(0.05)
    other = asyncio.ensure_future(run_job(spark, spark.range(7).count))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await other == 7


def slowly_in(place: str) -> Any:
    def slowly(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            Path(place, "begun").touch()
            time.sleep(600)
            yield batch

    return slowly


slowly = slowly_in(str(directory))
session: Any = (
    SparkSession.builder.remote("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.local.dir", str(directory / "local"))
    .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
    .config("spark.sql.codegen.wholeStage", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
try:
    asyncio.run(main(session))
finally:
    session.stop()
