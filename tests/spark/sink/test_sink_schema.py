"""Needs PySpark's types, and no session."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.errors import IllegalArgumentException

pytestmark = pytest.mark.conformance


def columns(ddl: str, topic: str | None = "t") -> dict[str, str]:
    types: Any = pytest.importorskip("pyspark.sql.types")
    from aioproducer.spark.sink.sink_schema import record_columns

    schema = types.StructType()
    for column in ddl.split(" | "):
        name, kind = column.split(maxsplit=1)
        schema.add(name, KINDS[kind](types))
    return record_columns(schema, topic)


def headers(types: Any, *kinds: Any) -> Any:
    fields = [types.StructField(f"f{at}", kind()) for at, kind in enumerate(kinds)]
    return types.ArrayType(types.StructType(fields))


KINDS: dict[str, Any] = {
    "string": lambda types: types.StringType(),
    "binary": lambda types: types.BinaryType(),
    "int": lambda types: types.IntegerType(),
    "bigint": lambda types: types.LongType(),
    "date": lambda types: types.DateType(),
    "timestamp": lambda types: types.TimestampType(),
    "timestamp_ntz": lambda types: types.TimestampNTZType(),
    "headers": lambda types: headers(types, types.StringType, types.BinaryType),
    "no headers": lambda types: headers(types, types.StringType),
    "strings": lambda types: types.ArrayType(types.StringType()),
    "map": lambda types: types.MapType(types.StringType(), types.BinaryType()),
    "int map": lambda types: types.MapType(types.IntegerType(), types.BinaryType()),
}


@pytest.mark.parametrize(
    ("ddl", "topic", "expected"),
    [
        ("value string", "t", ["value"]),
        ("value binary | key string | offset bigint | timestampType int", "t", ["key", "value"]),
        ("value string | topic string", None, ["topic", "value"]),
        ("value string | topic string", "t", ["value"]),
        ("headers headers | value string | partition int", "t", ["headers", "partition", "value"]),
        ("headers map | value string | partition bigint", "t", ["headers", "partition", "value"]),
        ("value string | timestamp timestamp", "t", ["timestamp", "value"]),
        ("value string | timestamp bigint", "t", ["timestamp", "value"]),
    ],
)
def test_the_columns_of_a_record_are_found_by_name(ddl: str, topic: str | None, expected: list[str]) -> None:
    found = columns(ddl, topic)
    assert sorted(found) == expected
    assert all(role == name for role, name in found.items())


@pytest.mark.parametrize(
    ("ddl", "topic", "message"),
    [
        ("key string", "t", 'there is no column "value"'),
        ("value string | value binary", "t", 'there are 2 columns "value"'),
        ("value bigint", "t", 'column "value" is bigint; it must be string or binary'),
        ("value string | key strings", "t", 'column "key" is array<string>; it must be string or binary'),
        ("value string", None, 'there is no column "topic": add one, or set option "topic"'),
        ("value string | topic binary", None, 'column "topic" is binary; it must be string'),
        ("value string | partition string", "t", 'column "partition" is string; it must be int'),
        ("value string | timestamp date", "t", 'column "timestamp" is date; it must be timestamp'),
        ("value string | timestamp timestamp_ntz", "t", 'column "timestamp" is timestamp_ntz'),
        ("value string | headers strings", "t", 'column "headers" is array<string>; it must be array<struct<'),
        ("value string | headers no headers", "t", 'column "headers" is array<struct<f0:string>>'),
        ("value string | headers int map", "t", 'column "headers" is map<int,binary>'),
        ("Value string", "t", r'column "Value" is unknown \(did you mean "value"\?\)'),
        ("value string | x string", "t", r'column "x" is unknown \(the sink has key, value'),
        ("key bigint | partition string", "t", '"value"; column "key" is bigint.*column "partition" is string'),
    ],
)
def test_an_unusable_column_is_named(ddl: str, topic: str | None, message: str) -> None:
    with pytest.raises(IllegalArgumentException, match=f"this DataFrame cannot be written to Kafka: .*{message}"):
        columns(ddl, topic)
