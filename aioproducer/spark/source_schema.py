"""The columns of the source: those of Spark's own Kafka source, and what is known of a record's batch."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.arrow_columns import ARROW_TYPES
from aioproducer.spark.options import one_of

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
            near = difflib.get_close_matches(field.name, COLUMNS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(COLUMNS)}"
            raise IllegalArgumentException(f"schema: the source has no column {field.name!r}; {hint}")
        if field.dataType != COLUMNS[field.name]:
            raise IllegalArgumentException(
                f"schema: column {field.name!r} is {field.dataType.simpleString()}, "
                f"and the source has it as {COLUMNS[field.name].simpleString()}: read it so, and cast it afterwards"
            )
        fields.append(pa.field(field.name, ARROW_TYPES[field.name], nullable=field.nullable))
    if not fields:
        raise IllegalArgumentException("schema: no column is asked for; name at least one")
    return pa.schema(fields)


def flag(options: Mapping[str, str], name: str) -> bool:
    """An option that is true or false, and false by default."""
    return one_of(options, name, ("true", "false"), "false") == "true"
