"""Needs PySpark's classes, and no session."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.conformance

PLAN = """[PYTHON_DATA_SOURCE_ERROR] Failed to generate read partitions: Traceback (most recent call last):
  File "source.py", line 29, in partitions
    partitions = reader.partitions()
ValueError: one

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "source.py", line 31, in partitions
UnknownTopicOrPartitionException: topic 'nosuch'
the option that names it is subscribe
 SQLSTATE: 38000"""

TASK = """An error occurred while calling o161.parquet.
: org.apache.spark.SparkException: Job aborted: Task 0 failed 1 times (executor driver): java.io.IOException: disk full
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:774)
Caused by: java.io.IOException: disk full"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            PLAN,
            "[PYTHON_DATA_SOURCE_ERROR] Failed to generate read partitions: UnknownTopicOrPartitionException: "
            "topic 'nosuch'",
        ),
        (
            TASK,
            "org.apache.spark.SparkException: Job aborted: Task 0 failed 1 times (executor driver): "
            "java.io.IOException: disk full",
        ),
        ("[PATH_NOT_FOUND] Path does not exist: file:/nosuch. SQLSTATE: 42K03\n", None),
        ("", "PySparkException"),
    ],
)
def test_an_error_is_one_line(text: str, line: str | None) -> None:
    pytest.importorskip("pyspark")
    from pyspark.errors import PySparkException

    from aioproducer.spark.audit.spark_errors import explained

    assert explained(PySparkException(text)) == (text.strip() if line is None else line)
