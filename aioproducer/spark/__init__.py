"""Spark: topics as a data source, for reading and writing; and DataFrames sent by a producer on the driver.

::

    from aioproducer.spark import register

    register(spark)  # in the main thread, Spark finds it by itself
    options = {"kafka.bootstrap.servers": "localhost:9092"}
    df.write.format("aioproducer").options(**options, topic="t").mode("append").save()
    spark.read.format("aioproducer").options(**options, subscribe="t").load()

Needs PySpark 4.1 or newer (``pip install 'aioproducer[spark]'``), on the executors as well, and no jars. Read in this
order, beginning with ``data_source.py``, which Spark calls:

- Writing: ``options.py``, ``sink_options.py`` and ``sink_schema.py`` check what the user wants before any task runs.
  ``writer.py`` is a task's write, ``topic_streams.py`` sends its rows, and ``whole_input.py`` ensures that these are
  all. Exactly once: ``two_phases.py`` has the order of things, with the rules in ``decision.py``, ``prepared.py`` and
  ``marker.py``. ``exactly_once.py`` is a task's part, ``epoch_commit.py`` the driver's, and ``ledger.py`` the requests
  of both. ``write_state.py`` is what people see of it, looked up by ``inspection.py`` and ``checkpoint.py``, and
  ``way_out.py`` the command for it.
- Reading: ``source_options.py`` and ``source_schema.py`` check. ``source.py`` and ``stream_source.py`` plan, with
  ``offset_reader.py`` (what the cluster knows) and ``offset_plan.py`` (the rules). ``range_reader.py`` is a task's
  read, ``arrow_columns.py`` makes its rows. ``progress.py`` reports how far it has come.
- Both: ``for_tasks.py`` is how their objects come from the driver to its tasks.
- On the driver: ``dataframe.py``, ``spark_job.py``. ``active_session.py`` is what threads of its own need.
- ``audit/`` proves what was delivered: ``run.py`` goes from topics to a report, ``job.py`` applies the rules in order,
  each of which has its own file; ``watch.py`` applies them to what is being written.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aioproducer.spark.data_source import AioproducerDataSource
    from aioproducer.spark.dataframe import Progress, produce_dataframe
    from aioproducer.spark.spark_job import run_job

__all__ = ["AioproducerDataSource", "Progress", "produce_dataframe", "register", "run_job"]

# The audit's reports are read, and the command line starts, without PySpark.
_HOMES = {
    "AioproducerDataSource": "aioproducer.spark.data_source",
    "Progress": "aioproducer.spark.dataframe",
    "produce_dataframe": "aioproducer.spark.dataframe",
    "run_job": "aioproducer.spark.spark_job",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
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
