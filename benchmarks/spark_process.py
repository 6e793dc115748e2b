"""One Spark session, ``local[2]``, that writes what it is told to: run by ``benchmarks spark`` in a process of its own.

Arguments: bootstrap servers, the directory with the jars of Spark's Kafka connector, a directory for Spark's files, and
how many topic partitions there are. Each line of standard input is a write as JSON: sink, rows, and the size of each.
It is answered by the same with the seconds it has taken and the sum of the topic's end offsets.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from benchmarks.topic import fresh_topics

TASKS = 2
EXACTLY_ONCE = "aioproducer, exactly-once"
SINKS: dict[str, dict[str, str]] = {
    "Spark's own": {"format": "kafka"},
    "aioproducer": {"format": "aioproducer"},
    EXACTLY_ONCE: {"format": "aioproducer", "deliveryGuarantee": "exactly-once"},
}


def session(jars: str, scratch: str) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{TASKS}]")
        .config("spark.jars", ",".join(map(str, sorted(Path(jars).glob("*.jar")))))
        .config("spark.ui.enabled", False)
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


def write(spark: Any, servers: str, topic: str, sink: str, rows: int, size: int) -> None:
    """Rows that Spark makes itself, of ``size`` bytes each and without a key."""
    frame = spark.range(0, rows, 1, TASKS).selectExpr(
        f"CAST(lpad(CAST(id AS STRING), {size}, '0123456789abcdef') AS BINARY) AS value"
    )
    options = dict(SINKS[sink])
    writer = frame.write.format(options.pop("format")).mode("append")
    if sink == EXACTLY_ONCE:
        options["writeId"] = uuid.uuid4().hex
    writer.options(**options, topic=topic).option("kafka.bootstrap.servers", servers).save()


async def timed(spark: Any, servers: str, partitions: int, order: dict[str, Any]) -> dict[str, Any]:
    async with fresh_topics(servers, partitions) as topics:
        began = time.perf_counter()
        # Not in another thread: in one that no session is active in, Spark finds no format of Python's.
        write(spark, servers, topics.name, order["sink"], order["rows"], order["size"])
        seconds = time.perf_counter() - began
        return {**order, "seconds": seconds, "end_offsets": await topics.records()}


def main(servers: str, jars: str, scratch: str, partitions: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever Spark prints is no answer
    spark = session(jars, scratch)
    for line in sys.stdin:
        answer = asyncio.run(timed(spark, servers, int(partitions), json.loads(line)))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
