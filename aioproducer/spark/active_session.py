"""The session that is active in a thread: where Spark looks for a format of Python's that is to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def activate(spark: SparkSession) -> None:
    """Makes the session the active one of the calling thread.

    Spark does so only in the thread that makes the first session of a program: there is none in the threads that
    Python starts, and ``newSession()`` leaves the one that there is. A session of Spark Connect is left alone, because
    its server knows which one each call is from.
    """
    if hasattr(spark, "_jsparkSession"):
        jvm: Any = spark._jvm
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
