"""Flights through Spark: a file of CSV or Parquet, a topic, and back; what arrived is compared, and audited.

The report of the delivery audit is flights-audit/report.html.

python examples/flights_spark.py                                  every flight from New York in 2013, embedded broker
python examples/flights_spark.py localhost:9092                   … on a cluster, in a topic of its own
python examples/flights_spark.py localhost:9092 flights.parquet   … from a file with a column tailnum
"""

from __future__ import annotations

import asyncio
import lzma
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Workers are to be this interpreter, which has the package.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.spark import register
from aioproducer.spark.audit.options import AuditOptions
from aioproducer.spark.audit.run import REPORT, audit_topics
from aioproducer.testing.threaded_cluster import ThreadedCluster

PARTITIONS = 6


@contextmanager
def bootstrap_servers() -> Iterator[str]:
    if len(sys.argv) > 1:
        yield sys.argv[1]
    else:
        with ThreadedCluster() as cluster:
            yield cluster.bootstrap_servers


async def create_topic(servers: str, name: str) -> None:
    async with KafkaAdmin(bootstrap_servers=servers) as admin:
        await admin.create_topic(NewTopic(name, PARTITIONS))


def flights(spark: SparkSession, directory: str) -> DataFrame:
    """The file named on the command line, or the flights beside this one."""
    if len(sys.argv) > 2:
        reader: Any = spark.read
        return reader.parquet(sys.argv[2]) if sys.argv[2].endswith(".parquet") else reader.csv(sys.argv[2], header=True)
    unpacked = Path(directory, "flights.csv")
    with lzma.open(Path(__file__).with_name("flights.csv.xz")) as lines, unpacked.open("wb") as copy:
        shutil.copyfileobj(lines, copy)
    return spark.read.csv(str(unpacked), header=True)


def records(flights: DataFrame) -> DataFrame:
    """Each flight as JSON, by its aircraft."""
    return flights.select(f.col("tailnum").alias("key"), f.to_json(f.struct("*")).alias("value"))


def log_of(topic: str) -> str:
    """The topic that tasks write their delivery logs to."""
    return f"{topic}-log"


def write(rows: DataFrame, options: dict[str, str], topic: str) -> None:
    """Exactly once: run again with the same writeId, tasks that have written write nothing. With delivery logs."""
    writer = rows.write.format("aioproducer").options(**options, topic=topic, deliveryLog=f"topic:{log_of(topic)}")
    writer.option("deliveryGuarantee", "exactly-once").option("writeId", topic).mode("append").save()


def report(spark: SparkSession, rows: DataFrame, options: dict[str, str], topic: str) -> bool:
    """What is in the topic, beside what was to be; whether they are the same."""
    source = spark.read.format("aioproducer").options(**options, subscribe=topic, includeBatch="true")
    read = source.option("kafka.isolation.level", "read_committed").load().where("NOT batch.control")
    read.groupBy("partition").agg(
        f.count("*").alias("records"),
        f.countDistinct("key").alias("aircraft"),
        f.countDistinct("batch.baseOffset").alias("batches"),
        f.round(f.avg("batch.sizeInBytes")).cast("int").alias("bytes of a batch"),
        f.countDistinct("batch.producerId").alias("producers"),
    ).orderBy("partition").show()
    arrived = read.select(f.col("key").cast("string"), f.col("value").cast("string"))
    sent_and_read = rows.withColumn("sent", f.lit(1)).union(arrived.withColumn("sent", f.lit(-1)))
    differences = sent_and_read.groupBy("key", "value").agg(
        f.sum("sent").alias("more"), f.sum(f.abs("sent")).alias("both")
    )
    (found,) = differences.agg(
        f.sum("both"), f.sum(f.greatest("more", f.lit(0))), f.sum(f.greatest(-f.col("more"), f.lit(0)))
    ).collect()
    both, missing, foreign = found
    sent = (both + missing - foreign) // 2
    print(f"{sent} flights sent, {both - sent} read: {missing} missing, {foreign} twice or of others")
    return not missing and not foreign


async def audit(spark: SparkSession, servers: str, topic: str, place: str) -> bool:
    """Proves what was delivered, by what is in the topic and what tasks wrote down; returns whether all is well."""
    options = AuditOptions(now_ms=round(time.time() * 1000))
    config = {"bootstrap.servers": servers}
    logs = [f"topic:{log_of(topic)}"]
    summary = await audit_topics(spark, config, [topic], place, options, delivery_logs=logs, read_committed=True)
    print(f"{summary.verdict}: see {place}/{REPORT}")
    return summary.proved


def main() -> int:
    builder = SparkSession.builder.master("local[2]").appName("flights").config("spark.sql.shuffle.partitions", "4")
    spark = builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    topic = f"flights-{uuid.uuid4()}"
    try:
        with TemporaryDirectory() as directory, bootstrap_servers() as servers:
            for name in (topic, log_of(topic)):
                asyncio.run(create_topic(servers, name))
            options = {"kafka.bootstrap.servers": servers}
            rows = records(flights(spark, directory))
            write(rows, options, topic)
            same = report(spark, rows, options, topic)
            return 0 if asyncio.run(audit(spark, servers, topic, "flights-audit")) and same else 1
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
