"""The columns of a DataFrame, and the parts of a record that they become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.options import hint

COLUMNS = ("key", "value", "headers", "topic", "partition", "timestamp")

_LEFT_OUT = ("offset", "timestampType")
"""Columns of Spark's Kafka source: ignored, so that what was read there can be written as it is."""


def record_columns(schema: StructType, topic: str | None) -> dict[str, str]:
    """The columns that are sent, by their use: the arguments of ``send_table``, and ``topic``.

    With the option ``topic``, a column of this name is ignored. IllegalArgumentException names every column that cannot
    be used.
    """
    wrong = [*_unknown(schema), *_unfit(schema)]
    names = schema.fieldNames()
    wrong += [f'there are {count} columns "{name}"' for name, count in Counter(names).items() if count > 1]
    if "value" not in names:
        wrong.insert(0, 'there is no column "value"')
    if "topic" not in names and topic is None:
        wrong.append('there is no column "topic": add one, or set option "topic"')
    if wrong:
        raise IllegalArgumentException(f"this DataFrame cannot be written to Kafka: {'; '.join(wrong)}")
    return {name: name for name in COLUMNS if name in names and (name != "topic" or topic is None)}


def _unknown(schema: StructType) -> list[str]:
    wrong = []
    for name in schema.fieldNames():
        if name not in COLUMNS and name not in _LEFT_OUT:
            what = hint(name, COLUMNS, f"the sink has {', '.join(COLUMNS)}")
            wrong.append(f'column "{name}" is unknown ({what})')
    return wrong


def _unfit(schema: StructType) -> list[str]:
    return [
        f'column "{field.name}" is {field.dataType.simpleString()}; it must be {_WANTED[field.name]}'
        for field in schema.fields
        if field.name in _WANTED and not _FITS[field.name](field.dataType)
    ]


def _is_text(given: DataType) -> bool:
    return isinstance(given, StringType | BinaryType)


def _is_one_of(*types: type[DataType]) -> Callable[[DataType], bool]:
    return lambda given: isinstance(given, types)


def _are_headers(given: DataType) -> bool:
    if isinstance(given, MapType):
        return isinstance(given.keyType, StringType) and _is_text(given.valueType)
    if not isinstance(given, ArrayType) or not isinstance(given.elementType, StructType):
        return False
    fields = given.elementType.fields
    return len(fields) == 2 and isinstance(fields[0].dataType, StringType) and _is_text(fields[1].dataType)


_TEXT = "string or binary: cast it, or make JSON of it with to_json"
_WANTED = {
    "key": _TEXT,
    "value": _TEXT,
    "headers": "array<struct<key:string,value:binary>> or map<string,binary>",
    "topic": "string",
    "partition": "int; null for one that the producer chooses",
    "timestamp": "timestamp, or bigint in milliseconds since 1970",
}
_FITS: dict[str, Callable[[DataType], bool]] = {
    "key": _is_text,
    "value": _is_text,
    "headers": _are_headers,
    "topic": _is_one_of(StringType),
    "partition": _is_one_of(ByteType, ShortType, IntegerType, LongType),
    "timestamp": _is_one_of(TimestampType, LongType),
}
