"""The data source: the class that Spark calls when a user names the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter
except ImportError as error:
    raise ImportError("aioproducer.spark needs PySpark 4.1 or newer: pip install 'aioproducer[spark]'") from error

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


class AioproducerDataSource(DataSource):
    """Kafka topics. ``docs/spark.md`` describes options and columns."""

    @classmethod
    def name(cls) -> str:
        return "aioproducer"

    # Imported when they are needed, so that each task imports only its own reader or writer.

    def schema(self) -> StructType:
        from aioproducer.spark.source.source_options import check_loaded
        from aioproducer.spark.source.source_schema import source_schema

        check_loaded(self.options)
        return source_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from aioproducer.spark.source.batch_source import BatchReader

        return BatchReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from aioproducer.spark.source.stream_source import StreamReader

        return StreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from aioproducer.spark.writer import BatchWriter

        return BatchWriter.of(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        from aioproducer.spark.writer import StreamWriter

        return StreamWriter.of(self.options, schema, overwrite)
