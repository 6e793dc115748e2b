"""Run by test_under_fire.py in a process of its own: batches, exactly once, on executors of two hosts.

Arguments: the bootstrap servers, the topic, and a directory, where each attempt of a task leaves a file. A first batch
has a task that is slow, so that Spark runs a speculative copy of it; of the tasks of a second one, each loses its
executor, one between its rows and one when all of its rows were written.

Spark runs a speculative copy on another host only. So it is no ``local-cluster``, but one of two workers that have two
of this machine's addresses, in the driver's JVM as there.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext, TaskContext
from pyspark.sql import SparkSession

from aioproducer.spark import AioproducerDataSource
from aioproducer.spark.writer import BatchWriter

servers, topic, directory = sys.argv[1:]
HOSTS = ("127.0.0.1", "127.0.0.2")
ROWS = 600
"""Of each task. One has 1000 bytes, so that those of half a task do not stay in a buffer on their way."""


class Deadly(AioproducerDataSource):
    @classmethod
    def name(cls) -> str:
        return "deadly"

    def writer(self, schema: Any, overwrite: bool) -> Any:
        return DeadlyWriter.of(self.options, schema, overwrite)


class DeadlyWriter(BatchWriter):
    """The executor of the second task is lost when its rows were written, and Spark does not know."""

    def write(self, iterator: Any) -> Any:
        written = super().write(iterator)
        if is_first_to_come("lost", 1):
            kill_executor()
        return written


def is_first_to_come(job: str, partition: int) -> bool:
    """Whether this is an attempt of that task, and none before it came so far. One that Spark had sent to an executor
    that was lost never began, so the first attempt that Spark counts need not be the first that comes."""
    context = TaskContext.get()
    assert context is not None
    if context.partitionId() != partition:
        return False
    try:
        Path(directory, f"{job}-{partition}-in-trouble").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def kill_executor() -> None:
    """The worker is a child of Spark's daemon for workers, and that is the executor's."""
    daemon = Path(f"/proc/{os.getppid()}/stat").read_text(encoding="utf-8")
    os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(60)


def troubled(frame: Any, job: str, trouble: Callable[[], None]) -> Any:
    """The first task has trouble once, when half of its rows were handed on."""

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        assert context is not None
        Path(directory, f"{job}-{context.partitionId()}-{context.attemptNumber()}").touch()
        passed = 0
        for batch in batches:
            yield batch
            passed += batch.num_rows
            if passed == ROWS // 2 and is_first_to_come(job, 0):
                trouble()

    return frame.mapInArrow(pass_on, frame.schema)


def start_cluster() -> str:
    """A master and a worker for each host; the URL."""
    jvm: Any = SparkContext._jvm
    deploy, option = jvm.org.apache.spark.deploy, jvm.scala.Option
    conf = jvm.org.apache.spark.SparkConf().set("spark.master.rest.enabled", "false")
    master = deploy.master.Master.startRpcEnvAndEndpoint(HOSTS[0], 0, 0, conf)
    urls = SparkContext._gateway.new_array(jvm.java.lang.String, 1)
    urls[0] = f"spark://{HOSTS[0]}:{master._1().address().port()}"
    for number, host in enumerate(HOSTS):
        place = str(Path(directory, f"worker-{number}"))
        worker = deploy.worker.Worker
        worker.startRpcEnvAndEndpoint(host, 0, 0, 1, 512, urls, place, option.apply(number), conf, option.empty())
    return str(urls[0])


os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
settings = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": quick,
    "spark.driver.host": HOSTS[0],
    "spark.driver.bindAddress": HOSTS[0],
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", quick),
    "spark.local.dir": str(Path(directory, "local")),
    "spark.sql.warehouse.dir": str(Path(directory, "warehouse")),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1",
    "spark.speculation.efficiency.enabled": "false",
}
conf = SparkConf().setAppName("two-hosts").setAll(list(settings.items()))
SparkContext._ensure_initialized(conf=conf)
session = SparkSession.builder.config(conf=conf.setMaster(start_cluster())).getOrCreate()
session.sparkContext.setLogLevel("ERROR")
session.dataSource.register(AioproducerDataSource)
session.dataSource.register(Deadly)


def write(job: str, tasks: int, source: str, trouble: Callable[[], None]) -> None:
    value = f"rpad('{job} ' || id || ' ', 1000, '.') AS value"
    frame = troubled(session.range(0, tasks * ROWS, 1, tasks).selectExpr(value), job, trouble)
    options = {"kafka.bootstrap.servers": servers, "topic": topic, "deliveryGuarantee": "exactly-once", "writeId": job}
    frame.write.format(source).options(**options).mode("append").save()


write("slow", 3, "aioproducer", lambda: time.sleep(120))
write("lost", 2, "deadly", kill_executor)
session.stop()
