"""Spark: topics as a data source, for reading and writing; and DataFrames sent by a producer on the driver.

::

    from aioproducer.spark import register

    register(spark)  # in the main thread, Spark finds it by itself
    options = {"kafka.bootstrap.servers": "localhost:9092"}
    df.write.format("aioproducer").options(**options, topic="t").mode("append").save()
    spark.read.format("aioproducer").options(**options, subscribe="t").load()

Needs PySpark 4.1 or newer (``pip install 'aioproducer[spark]'``), on the executors as well, and no jars.

Spark calls the data source, which checks options and columns before any task runs. A writer is sent to each task, whose
producer sends the task's rows. In an exactly-once write the task leaves its transaction open; the driver decides about
the epoch, then commits. A read is planned on the driver from the offsets of the cluster; each task reads its ranges.

data_source.py      what Spark calls when a user names the format
options.py          options that source and sink share
for_tasks.py        objects that the driver sends to its tasks
loop_thread.py      an event loop in its own thread, for code that Spark calls synchronously
writer.py           the writers of a batch and of a stream
sink/               sends the rows of a task to their topics
exactly_once/       makes all rows of an epoch readable together, or none
source/             plans ranges of offsets, and reads them
dataframe.py        sends a DataFrame by a producer on the driver
spark_job.py        Spark jobs that a coroutine awaits and cancels
active_session.py   the Spark session of a thread
audit/              proves what was delivered
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aioproducer.spark.data_source import AioproducerDataSource
    from aioproducer.spark.dataframe import Progress, produce_dataframe
    from aioproducer.spark.source.progress import offsets_behind
    from aioproducer.spark.spark_job import run_job

__all__ = ["AioproducerDataSource", "Progress", "offsets_behind", "produce_dataframe", "register", "run_job"]

# The audit's reports are read, and the command line starts, without PySpark.
_HOMES = {
    "AioproducerDataSource": "aioproducer.spark.data_source",
    "Progress": "aioproducer.spark.dataframe",
    "offsets_behind": "aioproducer.spark.source.progress",
    "produce_dataframe": "aioproducer.spark.dataframe",
    "run_job": "aioproducer.spark.spark_job",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except AttributeError as error:  # from ... import would drop it, and say no more than that the name is missing
        raise ImportError(f"cannot import {name!r} from {__name__!r}: {error}") from error
    return value


def register(spark: SparkSession) -> None:
    """Registers the format ``aioproducer`` with a session, and makes the session the active one of the calling thread.

    Spark finds the format by itself where it knows the session; to write from any other thread than the one that made
    the session, this must be called there first.
    """
    from aioproducer.spark.active_session import activate
    from aioproducer.spark.data_source import AioproducerDataSource

    activate(spark)
    spark.dataSource.register(AioproducerDataSource)
