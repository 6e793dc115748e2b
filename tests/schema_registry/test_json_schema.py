"""JSON Schema: classes, dicts, checks and references."""

from __future__ import annotations

import dataclasses
import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pydantic", reason="pydantic is not installed")
pytest.importorskip("jsonschema", reason="jsonschema is not installed")

from pydantic import BaseModel, Field

from aioproducer.errors import IllegalArgumentException, SerializationException
from aioproducer.schema_registry import (
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
)
from aioproducer.schema_registry.wire_format import prefix
from tests.support.schema_registry.fake_registry import FakeRegistry


@dataclasses.dataclass
class Item:
    sku: str
    count: int = 1


class Order(BaseModel):
    number: int
    total: Decimal
    day: date = Field(alias="on")
    items: list[Item] = []


SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {"number": {"type": "integer"}, "items": {"type": "array", "items": {"type": "string"}}},
    "required": ["number"],
    "additionalProperties": False,
}


@pytest.fixture
def registry(fake: FakeRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient(fake.url, max_retries=0)


async def written(serializer: JsonSchemaSerializer[Any], data: Any) -> bytes:
    await serializer.prepare("t")
    made = serializer.serialize("t", [], data)
    assert isinstance(made, bytes)
    return made


async def test_a_pydantic_model(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    order = Order(number=1, total=Decimal("9.50"), on=date(2026, 1, 2), items=[Item("ä", 2)])
    made = await written(JsonSchemaSerializer(registry, Order), order)
    assert made == prefix(1) + '{"number":1,"total":"9.50","on":"2026-01-02","items":[{"sku":"ä","count":2}]}'.encode()
    schema = json.loads(fake.schemas[0]["schema"])
    assert (fake.schemas[0]["schemaType"], schema["title"]) == ("JSON", "Order")
    assert set(schema["properties"]) == {"number", "total", "on", "items"}
    checking = JsonSchemaDeserializer(registry, json_fail_invalid_schema=True)
    found: Any = await checking(made)
    assert found["items"] == [{"sku": "ä", "count": 2}]


async def test_a_dataclass(registry: SchemaRegistryClient) -> None:
    serializer = JsonSchemaSerializer(registry, Item)
    assert await written(serializer, Item("a")) == prefix(1) + b'{"sku":"a","count":1}'
    with pytest.raises(SerializationException, match="the JSON schema Item takes Item, not dict"):
        serializer.serialize("t", [], {"sku": "a"})  # type: ignore[arg-type]
    with pytest.raises(SerializationException, match="cannot be written as JSON"):
        serializer.serialize("t", [], Item(5))  # type: ignore[arg-type]


async def test_an_own_schema_is_checked(registry: SchemaRegistryClient) -> None:
    serializer = JsonSchemaSerializer(registry, SCHEMA)
    assert await written(serializer, {"number": 1}) == prefix(1) + b'{"number":1}'
    for data, said in (
        ({"number": "1"}, r"does not fit the JSON schema Order at \$\.number: '1' is not of type 'integer'"),
        ({"number": 1, "items": ["a", 2]}, r"at \$\.items\[1\]"),
        ({}, "does not fit the JSON schema Order: 'number' is a required property"),
        ({"number": 1, "nmber": 1}, "Additional properties"),
    ):
        with pytest.raises(SerializationException, match=said):
            serializer.serialize("t", [], data)


@pytest.mark.parametrize("data", [{"number": float("nan")}, {"number": {1}}, {"number": "\ud800"}])
async def test_data_that_json_cannot_express_are_refused(registry: SchemaRegistryClient, data: Any) -> None:
    serializer = JsonSchemaSerializer(registry, SCHEMA, json_fail_invalid_schema=False)
    await serializer.prepare("t")
    with pytest.raises(SerializationException, match="cannot be written as JSON"):
        serializer.serialize("t", [], data)


async def test_the_check_can_be_left_out(registry: SchemaRegistryClient) -> None:
    serializer = JsonSchemaSerializer(registry, SCHEMA, json_fail_invalid_schema=False)
    made = await written(serializer, {"number": "1"})
    assert await JsonSchemaDeserializer(registry)(made) == {"number": "1"}
    with pytest.raises(SerializationException, match="does not fit its JSON schema"):
        await JsonSchemaDeserializer(registry, json_fail_invalid_schema=True)(made)


async def test_references(registry: SchemaRegistryClient) -> None:
    await registry.register_schema("sku", Schema('{"type": "string", "minLength": 2}', "JSON"))
    inner = Schema('{"$ref": "sku.json"}', "JSON", (SchemaReference("sku.json", "sku", 1),))
    await registry.register_schema("inner", inner)
    outer = Schema(
        '{"title": "O", "properties": {"a": {"$ref": "inner.json"}}}',
        "JSON",
        (SchemaReference("inner.json", "inner", 1),),
    )
    serializer = JsonSchemaSerializer(registry, outer)
    assert await written(serializer, {"a": "xy"})
    with pytest.raises(SerializationException, match=r"at \$\.a: 'x' is too short"):
        serializer.serialize("t", [], {"a": "x"})


async def test_a_reference_that_leads_nowhere_asks_nobody(registry: SchemaRegistryClient) -> None:
    """Least of all a server that the schema names."""
    serializer = JsonSchemaSerializer(registry, {"properties": {"a": {"$ref": "http://127.0.0.1:1/a.json"}}})
    await serializer.prepare("t")
    with pytest.raises(SerializationException, match="cannot be applied"):
        serializer.serialize("t", [], {"a": 1})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "no JSON"),
        ({"type": "nothing"}, "cannot be used"),
        (Schema('"int"'), "one of AVRO"),
        (5, "the schema is of type int"),
        (set, "neither|derives no JSON schema|cannot write"),
    ],
)
def test_a_value_that_is_no_schema_is_refused(registry: SchemaRegistryClient, schema: Any, said: str) -> None:
    if schema is set:
        schema = type("Odd", (), {})
    with pytest.raises(IllegalArgumentException, match=said):
        JsonSchemaSerializer(registry, schema)


async def test_broken_data(registry: SchemaRegistryClient) -> None:
    await written(JsonSchemaSerializer(registry, SCHEMA), {"number": 1})
    deserialize = JsonSchemaDeserializer(registry)
    for data in (b"", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(SerializationException, match="not what the schema with id 1 says"):
            await deserialize(prefix(1) + data)
