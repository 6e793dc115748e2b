"""A Spark session, ``local[2]``, that ``benchmarks spark`` runs in a process of its own and orders to write.

Arguments: bootstrap servers, the directory with the jars of Spark's Kafka connector, a directory for Spark's files, and
the number of topic partitions. Each line of standard input is an order as JSON: sink, rows, the size of each, tasks.
The answer repeats it, with the seconds and CPU seconds that the write took and the sum of the topic's end offsets.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness.machine_cpu import own_seconds
from benchmarks.harness.topics import fresh_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyarrow import RecordBatch

CORES: Final = 2
OWN, TUNED = "Spark's own", "Spark's own, tuned"
EMPTY = "an empty function"
"""A function in Python that reads its rows and does nothing: what every task with Python costs."""
AT_LEAST_ONCE = "aioproducer"
EXACTLY_ONCE = "aioproducer, exactly-once"
SINKS: dict[str, dict[str, str]] = {
    OWN: {"format": "kafka"},
    TUNED: {"format": "kafka", "kafka.batch.size": str(64 * 1024), "kafka.linger.ms": "5"},
    AT_LEAST_ONCE: {"format": "aioproducer"},
    EXACTLY_ONCE: {"format": "aioproducer", "deliveryGuarantee": "exactly-once"},
}


def session(jars: str, scratch: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.jars", ",".join(map(str, sorted(Path(jars).glob("*.jar")))))
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", scratch)
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("WARN")
    from aioproducer.spark import register

    register(spark)
    return spark


def write(spark: Any, servers: str, topic: str, sink: str, rows: int, size: int, tasks: int) -> None:
    """Rows that Spark makes itself, of ``size`` bytes each and without a key."""
    frame = spark.range(0, rows, 1, tasks).selectExpr(
        f"CAST(lpad(CAST(id AS STRING), {size}, '0123456789abcdef') AS BINARY) AS value"
    )
    if sink == EMPTY:
        frame.mapInArrow(_nothing, frame.schema).write.format("noop").mode("overwrite").save()
        return
    options = dict(SINKS[sink])
    writer = frame.write.format(options.pop("format")).mode("append")
    if sink == EXACTLY_ONCE:
        options["writeId"] = uuid.uuid4().hex
    writer.options(**options, topic=topic).option("kafka.bootstrap.servers", servers).save()


def _nothing(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    for _ in batches:
        pass
    yield from ()


async def timed(spark: Any, servers: str, partitions: int, order: dict[str, Any]) -> dict[str, Any]:
    async with fresh_topics(servers, partitions) as topics:
        began, cpu = time.perf_counter(), own_seconds()
        # Not in another thread: in one that no session is active in, Spark finds no format of Python's.
        write(spark, servers, topics.name, **order)
        taken = {"seconds": time.perf_counter() - began, "cpu_seconds": own_seconds() - cpu}
        return {**order, **taken, "end_offsets": await topics.records()}


def main(servers: str, jars: str, scratch: str, partitions: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what Spark prints is no answer
    spark = session(jars, scratch)
    for line in sys.stdin:
        answer = asyncio.run(timed(spark, servers, int(partitions), json.loads(line)))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
