"""A user's program: a session on a cluster, and writes as they are ordered. Run by ``driver_process.py``.

Arguments: master, bootstrap servers, topic, and how many cores it takes. Each line of standard input is an order as
JSON, each line of standard output an answer. ``run`` is answered when the write has ended; meanwhile it can be
interrupted by ``stop`` and ``cancel``, which are not answered.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from aioproducer.spark import register

from .plan import Mode
from .watched import DIRECTORY, Watched, upstream

ROWS_OF_A_BATCH = 20


class Driver:
    """The session, and the query that is running."""

    def __init__(self, master: str, servers: str, topic: str, cores: str) -> None:
        self._directory = Path(os.environ[DIRECTORY])
        self._topic = topic
        self._options = {
            "kafka.bootstrap.servers": servers,
            "topic": topic,
            "deliveryGuarantee": "exactly-once",
            "kafka.linger.ms": "5",
        }
        self._query: Any = None
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        builder = SparkSession.builder.master(master).appName("campaign")
        for name, value in {
            "spark.cores.max": cores,
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": quick,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", quick),
            "spark.executor.memory": "512m",
            "spark.local.dir": str(self._directory / "local"),
            "spark.speculation": "true",
            "spark.speculation.efficiency.enabled": "false",
            "spark.speculation.interval": "300ms",
            "spark.speculation.multiplier": "2",
            "spark.speculation.quantile": "0.5",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_OF_A_BATCH),
            "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }.items():
            builder = builder.config(name, value)
        self._session = builder.getOrCreate()
        self._session.sparkContext.setLogLevel("ERROR")

    def obey(self, order: dict[str, Any]) -> None:
        match order["do"]:
            case "run":
                threading.Thread(target=self._run, args=(order,)).start()
            case "stop":
                self._stop()
            case "cancel":
                self._session.sparkContext.cancelAllJobs()
            case "leave":
                self._session.stop()

    def _stop(self) -> None:
        if self._query is None:
            self._session.sparkContext.cancelAllJobs()  # there is no other way to stop a batch
        else:
            self._query.stop()

    def _run(self, order: dict[str, Any]) -> None:
        error = None
        try:
            register(self._session)
            self._session.dataSource.register(Watched)
            mode, partitions, number = Mode(order["mode"]), int(order["partitions"]), int(order["number"])
            if mode is Mode.BATCH:
                rows = self._session.read.text(str(self._directory / mode.name / f"{number}.txt"))
                self._write_batch(rows, partitions, f"batch-{self._topic}", number)
            else:
                self._write_stream(mode, partitions)
        except BaseException:
            error = traceback.format_exc()
        answer({"ended": error})

    def _write_batch(self, rows: Any, partitions: int, write_id: str, epoch: int) -> None:
        frame = rows.repartition(partitions)
        writer = frame.mapInArrow(upstream, frame.schema).write.format("watched").options(**self._options)
        writer.options(writeId=write_id, writeEpoch=epoch).mode("append").save()

    def _write_stream(self, mode: Mode, partitions: int) -> None:
        files = self._session.readStream.format("text").option("maxFilesPerTrigger", 1)
        rows = files.load(str(self._directory / mode.name))
        checkpoint = str(self._directory / f"checkpoint-{mode.name}")
        if mode is Mode.STREAM:
            frame = rows.repartition(partitions)
            writer = frame.mapInArrow(upstream, frame.schema).writeStream.format("watched").options(**self._options)
        else:
            writer = rows.writeStream.foreachBatch(
                lambda batch, epoch: self._write_batch(batch, partitions, f"foreach-{self._topic}", epoch)
            )
        self._query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            self._query.awaitTermination()
        finally:
            self._query = None


def answer(fields: dict[str, Any]) -> None:
    ANSWERS.write(json.dumps(fields) + "\n")
    ANSWERS.flush()


if __name__ == "__main__":
    ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what Spark prints is no answer
    driver = Driver(*sys.argv[1:])
    answer({"ready": True})
    for line in sys.stdin:
        try:
            driver.obey(json.loads(line))
        except Exception:  # such as a query that has ended meanwhile
            traceback.print_exc()
        if json.loads(line)["do"] == "leave":
            break
    os._exit(0)  # a write that is still running fails, which is not waited for
