"""A stream of text files to a topic, exactly once; and, run by test_sink.py in a process of its own, a driver of it
that is killed in its first epoch.

Arguments: the bootstrap servers, the topic, a directory with the files in ``in``, and when: ``written``, when some of
the tasks have written their rows, or ``decided``, when the driver has decided about the epoch and has ended nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from aioproducer.spark import AioproducerDataSource
from aioproducer.spark.exactly_once.ledger import KafkaDriversLedger
from aioproducer.spark.writer import StreamWriter


def run_query(session: Any, sink: str, servers: str, topic: str, directory: Path, partitions: int = 3) -> None:
    """All that is there, one file an epoch."""
    lines = session.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(directory / "in"))
    options = {
        "kafka.bootstrap.servers": servers,
        "topic": topic,
        "deliveryGuarantee": "exactly-once",
        "checkpointLocation": str(directory / "checkpoint"),
    }
    writer = lines.repartition(partitions).writeStream.format(sink).options(**options).trigger(availableNow=True)
    writer.start().awaitTermination()


class Dying(AioproducerDataSource):
    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return DyingWriter.of(self.options, schema, overwrite)


class DyingWriter(StreamWriter):
    def write(self, iterator: Any) -> Any:
        if WHEN == "written" and WRITTEN.exists():
            die()
        written = super().write(iterator)
        WRITTEN.touch()
        return written

    def commit(self, messages: Any, batchId: int) -> None:
        decide = KafkaDriversLedger.decide

        async def and_die(ledger: KafkaDriversLedger) -> None:
            await decide(ledger)
            die()

        with patch.object(KafkaDriversLedger, "decide", and_die if WHEN == "decided" else decide):
            super().commit(messages, batchId)


def die() -> None:
    os.kill(DRIVER, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    servers, topic, directory, WHEN = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4]
    DRIVER = os.getpid()
    WRITTEN = directory / "a-task-has-written"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", False)
        .config("spark.driver.memory", "512m")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(Dying)
    run_query(session, "dying", servers, topic, directory)
