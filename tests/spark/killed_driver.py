"""Run by test_sink.py in a process of its own: a stream of text files to a topic, exactly once.

Arguments: the bootstrap servers, the topic, a directory with the files in ``in``, and whether the driver shall ``die``
when the rows of its first epoch were committed, and Spark has not written that down.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from aioproducer.spark import AioproducerDataSource
from aioproducer.spark.writer import StreamWriter

servers, topic, directory, fate = sys.argv[1:]
DRIVER = os.getpid()


class Dying(AioproducerDataSource):
    """Its driver is killed when it is to commit."""

    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return DyingWriter(StreamWriter.of(self.options, schema, overwrite))


class DyingWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer

    def write(self, iterator: Any) -> Any:
        return self._writer.write(iterator)

    def commit(self, messages: Any, batchId: int) -> None:
        os.kill(DRIVER, signal.SIGKILL)
        raise SystemExit("killed")


os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
session = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", False)
    .config("spark.driver.memory", "512m")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.codegen.wholeStage", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.local.dir", str(Path(directory, "local")))
    .config("spark.sql.warehouse.dir", str(Path(directory, "warehouse")))
    .getOrCreate()
)
session.sparkContext.setLogLevel("ERROR")
session.dataSource.register(AioproducerDataSource)
session.dataSource.register(Dying)
lines = session.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(Path(directory, "in")))
query = (
    lines.writeStream.format("dying" if fate == "die" else "aioproducer")
    .option("kafka.bootstrap.servers", servers)
    .option("topic", topic)
    .option("deliveryGuarantee", "exactly-once")
    .option("checkpointLocation", str(Path(directory, "checkpoint")))
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
session.stop()
