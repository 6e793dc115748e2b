"""Tables written to Parquet and read back: each step reads what the one before it made, and nothing is made twice."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession


class Tables:
    """A directory, or any place that Spark can write to, with a directory of Parquet files for each table."""

    def __init__(self, spark: SparkSession, place: str, on_progress: Callable[[str], None]) -> None:
        self._spark = spark
        self._place = place
        self._on_progress = on_progress

    def keep(self, name: str, made: DataFrame, *, files: int | None = None) -> DataFrame:
        """Writes a table, replacing that of an earlier audit, and returns it as read back."""
        self._on_progress(name)
        path = f"{self._place}/{name}.parquet"
        (made if files is None else made.coalesce(files)).write.mode("overwrite").parquet(path)
        return self._spark.read.schema(made.schema).parquet(path)
