"""Run by test_spark.py in a process of its own: reads topic t with Spark's Kafka source, and prints JSON.

Arguments: the bootstrap servers, the directory with the connector's jars, one for Spark's own files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

servers, libs, scratch = sys.argv[1:]
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", ",".join(map(str, sorted(Path(libs).glob("*.jar")))))
    .config("spark.ui.enabled", False)
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.codegen.wholeStage", False)
    .config("spark.sql.shuffle.partitions", 1)
    .config("spark.driver.memory", "512m")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.local.dir", scratch)
    .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
    .getOrCreate()
)
session.sparkContext.setLogLevel("WARN")
options = {
    "kafka.bootstrap.servers": servers,
    "subscribe": "t",
    "startingOffsets": "earliest",
    "kafka.isolation.level": "read_committed",
}

batch = session.read.format("kafka").options(**options).load()
rows = [(row.partition, row.offset, bytes(row.value).decode()) for row in batch.collect()]

stream = session.readStream.format("kafka").options(**options, maxOffsetsPerTrigger=10).load()
query = (
    stream.writeStream.format("memory")
    .queryName("streamed")
    .option("checkpointLocation", f"{scratch}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
streamed = [(row.partition, row.offset, bytes(row.value).decode()) for row in session.table("streamed").collect()]

# And the other way: Spark's sink.
batch.selectExpr("key", "upper(cast(value as string)) AS value").write.format("kafka").option(
    "kafka.bootstrap.servers", servers
).option("topic", "copied").save()

found = {"batch": rows, "stream": streamed, "triggers": len(query.recentProgress)}
sys.stdout.write(f"JSON {json.dumps(found)}\n")
session.stop()
