"""Run by test_sink.py in a process of its own: a stream of text files to a topic, exactly once, three tasks an epoch.

Arguments: the bootstrap servers, the topic, a directory with the files in ``in``, and whether the driver shall ``die``
in its first epoch, when some of the tasks have committed their rows.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from aioproducer.spark import AioproducerDataSource
from aioproducer.spark.writer import StreamWriter

servers, topic, directory, fate = sys.argv[1:]
DRIVER = os.getpid()
WRITTEN = Path(directory, "a-task-has-written")


class Dying(AioproducerDataSource):
    """Its driver is killed by the task that comes after the first ones."""

    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return DyingWriter.of(self.options, schema, overwrite)


class DyingWriter(StreamWriter):
    def write(self, iterator: Any) -> Any:
        if WRITTEN.exists():
            os.kill(DRIVER, signal.SIGKILL)
            raise SystemExit("the driver is gone")
        written = super().write(iterator)
        WRITTEN.touch()
        return written


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
    lines.repartition(3)
    .writeStream.format("dying" if fate == "die" else "aioproducer")
    .option("kafka.bootstrap.servers", servers)
    .option("topic", topic)
    .option("deliveryGuarantee", "exactly-once")
    .option("checkpointLocation", str(Path(directory, "checkpoint")))
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
session.stop()
