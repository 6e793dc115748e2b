"""One SparkSession for all tests that are marked ``conformance``; the others need no Spark."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.quick_start import QUICK_START

TIMEOUT = 600
"""Seconds for a test, with the start of the session if it is the first, on a machine however busy."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("conformance"):
            item.add_marker(pytest.mark.timeout(TIMEOUT))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """local[2], a task may fail three times; workers are this interpreter."""
    if importlib.util.find_spec("pyspark") is None:
        why = "pyspark is not installed (the dependency group spark)"
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI has to run Spark: {why}", pytrace=False)
        pytest.skip(why)
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,4]").appName("aioproducer-tests")
    for name, value in {
        **QUICK_START,
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    # Nothing is registered: Spark has to find the format by itself.
    yield session
    session.stop()
