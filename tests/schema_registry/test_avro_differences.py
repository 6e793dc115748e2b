"""Differences between Avro schemas, in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aioproducer.schema_registry.avro_differences import MOST, avro_differences


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    made = []
    for name_, kind, *default in fields:
        made.append({"name": name_, "type": kind, **({"default": default[0]} if default else {})})
    return {"type": "record", "name": name, "fields": made}


ID = ("id", "string")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (record(ID), record(ID), []),
        (record(ID), record(ID, ("n", "int")), ["the field 'n' (int) is new and has no default"]),
        (record(ID), record(ID, ("n", ["null", "int"], None)), ["the field 'n' (one of null, int) is new"]),
        (record(ID, ("n", "int")), record(ID), ["the field 'n' is gone, and had no default"]),
        (record(ID, ("n", "int", 0)), record(ID), ["the field 'n' is gone"]),
        (record(ID), record(("id", "int")), ["the field 'id' is int, and was string"]),
        (record(("id", {"type": "string"})), record(ID), []),
        (
            record(("at", "long")),
            record(("at", {"type": "long", "logicalType": "timestamp-millis"})),
            ["the field 'at' is timestamp-millis (long), and was long"],
        ),
        (
            record(("of", record(ID, name="Of"))),
            record(("of", record(("id", "int"), name="Of"))),
            ["the field 'of.id' is int, and was string"],
        ),
        (
            record(("of", {"type": "array", "items": record(ID, name="Of")})),
            record(("of", {"type": "array", "items": record(ID, ("n", "int"), name="Of")})),
            ["the field 'of[].n' (int) is new and has no default"],
        ),
        (
            record(("of", {"type": "map", "values": "int"})),
            record(("of", {"type": "map", "values": "long"})),
            ["the field 'of{}' is long, and was int"],
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            {"type": "enum", "name": "E", "symbols": ["B", "C"]},
            ["the schema has the new symbols C", "the schema has lost the symbols A"],
        ),
        ("string", "int", ["the schema is int, and was string"]),
        (record(ID), record(ID, name="Refund"), ["the schema is record Refund, and was record Order"]),
        (record(), record(*((f"f{n}", "int") for n in range(MOST + 5))), None),
    ],
)
def test_differences(old: Any, new: Any, words: list[str] | None) -> None:
    found = avro_differences(json.dumps(old), json.dumps(new))
    if words is None:
        assert len(found) == MOST + 1
        assert found[-1] == "and 5 more"
    else:
        assert found == words


@pytest.mark.parametrize("text", ["{", '{"type": "record"}', "[" * 100_000, "null"])
def test_an_unreadable_schema_has_no_differences(text: str) -> None:
    assert avro_differences(text, text) == []
