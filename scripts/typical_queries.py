"""Loads the classes of Spark that most sessions use; for archive_classes.py."""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
session: Any = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.codegen.wholeStage", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
numbers = session.range(1000).selectExpr("id % 10 AS key", "CAST(id AS STRING) AS value")
counted = numbers.groupBy("key").count()
counted.join(numbers, "key").orderBy("value").write.parquet("joined")
session.read.parquet("joined").mapInArrow(lambda batches: batches, "key long, count long, value string").collect()
session.createDataFrame([(1, "a")], "number int, text string").selectExpr("upper(text)").collect()

gateway: Any = SparkContext._gateway
session.stop()
gateway.shutdown()
gateway.proc.stdin.close()  # then the JVM ends
gateway.proc.wait()
