"""Submitted to a cluster by test_clusters.py: writes rows, reads them back, and prints as JSON where its tasks ran.

Arguments: the bootstrap servers and a topic.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from aioproducer.spark import register

servers, topic = sys.argv[1:]
ROWS = 1000


def whereabouts(batches: Iterator[Any]) -> Iterator[Any]:
    """Where a task runs: the environment of its interpreter, and the file of the package."""
    import pyarrow as pa

    import aioproducer

    for _ in batches:
        yield pa.record_batch({"prefix": [sys.prefix], "package": [aioproducer.__file__]})


session = SparkSession.builder.appName("submitted").getOrCreate()
session.sparkContext.setLogLevel("ERROR")
register(session)
options = {"kafka.bootstrap.servers": servers}
rows = session.range(0, ROWS, 1, 4).selectExpr("CAST(id AS STRING) AS value")
writer = rows.write.format("aioproducer").options(**options, topic=topic, writeId="w")
writer.option("deliveryGuarantee", "exactly-once").mode("append").save()
read = session.read.format("aioproducer").options(**options, subscribe=topic)
text = read.option("kafka.isolation.level", "read_committed").load().selectExpr("CAST(value AS STRING) AS value")
found = sorted(int(row.value) for row in text.collect())
tasks = session.range(0, 4, 1, 4).mapInArrow(whereabouts, "prefix string, package string").distinct().collect()
report = {"right": found == list(range(ROWS)), "tasks": [row.asDict() for row in tasks], "driver": sys.prefix}
sys.stdout.write(f"JSON {json.dumps(report)}\n")
session.stop()
