"""A Spark session for audits on this machine."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def audit_session(master: str, memory: str, scratch: str) -> SparkSession:
    """A session whose driver takes ``memory`` (such as ``2g``) and keeps what does not fit in ``scratch``.

    ``master`` is Spark's: ``local[*]``, or the address of a cluster. Workers run this same interpreter.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    session: SparkSession = (
        SparkSession.builder.master(master)
        .appName("aioproducer audit")
        .config("spark.driver.memory", memory)
        .config("spark.local.dir", scratch)
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.adaptive.coalescePartitions.parallelismFirst", False)
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .getOrCreate()
    )
    return session
