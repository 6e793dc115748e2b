"""The columns of the source: those of Spark's own Kafka source, and what is known of a record's batch."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.options import flag, hint
from aioproducer.spark.source.arrow_columns import ARROW_TYPES

COLUMNS: Mapping[str, DataType] = {name: from_arrow_type(type) for name, type in ARROW_TYPES.items()}


def source_schema(options: Mapping[str, str]) -> StructType:
    """The columns if the user gives no schema: headers and batch only if the options say so."""
    left_out = set()
    if not flag(options, "includeHeaders"):
        left_out.add("headers")
    if not flag(options, "includeBatch"):
        left_out.add("batch")
    return StructType([StructField(name, type) for name, type in COLUMNS.items() if name not in left_out])


def arrow_schema(schema: StructType) -> pa.Schema:
    """The same columns for Arrow, as Spark expects them; IllegalArgumentException for one that the source lacks."""
    fields = []
    for field in schema.fields:
        if field.name not in COLUMNS:
            what = hint(field.name, COLUMNS, f"it has {', '.join(COLUMNS)}")
            raise IllegalArgumentException(f'schema: the source has no column "{field.name}"; {what}')
        if field.dataType != COLUMNS[field.name]:
            raise IllegalArgumentException(
                f'schema: column "{field.name}" is {field.dataType.simpleString()}, '
                f"but {COLUMNS[field.name].simpleString()} in the source: read it as that type, and cast it afterwards"
            )
        fields.append(pa.field(field.name, ARROW_TYPES[field.name], nullable=field.nullable))
    if not fields:
        raise IllegalArgumentException("schema: it has no columns; name at least one")
    return pa.schema(fields)
