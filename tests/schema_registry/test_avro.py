"""Avro: dicts and classes, references, evolution, and data that does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

pytest.importorskip("fastavro", reason="fastavro is not installed")

from aioproducer.errors import IllegalArgumentException, SerializationException
from aioproducer.schema_registry import AvroDeserializer, AvroSerializer, Schema, SchemaReference, SchemaRegistryClient
from aioproducer.schema_registry.wire_format import prefix
from tests.support.schema_registry.fake_registry import FakeRegistry

SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "number", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


@dataclass
class Order:
    number: int
    note: str | None = None

    @cached_property
    def title(self) -> str:
        return f"order {self.number}"


@dataclass
class Nested:
    orders: list[Order] = field(default_factory=list)


@pytest.fixture
def registry(fake: FakeRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient(fake.url, max_retries=0)


async def written(serializer: AvroSerializer[Any], data: Any, topic: str = "t") -> bytes:
    await serializer.prepare(topic)
    made = serializer.serialize(topic, [], data)
    assert isinstance(made, bytes)
    return made


async def test_a_dict(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    made = await written(AvroSerializer(registry, SCHEMA), {"number": 3})
    assert made == prefix(1) + b"\x06\x00"
    assert await AvroDeserializer(registry)(made) == {"number": 3, "note": None}


@pytest.mark.parametrize("schema", ['"long"', '{"type": "long"}', {"type": "long"}, Schema('"long"')])
async def test_a_primitive(registry: SchemaRegistryClient, schema: Any) -> None:
    made = await written(AvroSerializer(registry, schema, is_key=True), -1)
    assert made == prefix(1) + b"\x01"
    assert await AvroDeserializer(registry)(bytearray(made)) == -1


async def test_objects_of_a_class(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    order = Order(3, "x")
    assert order.title  # cached in the object, and no field
    made = await written(AvroSerializer(registry, Order), order)
    assert made == prefix(1) + b"\x06\x02\x02x"
    assert await AvroDeserializer(registry)(made) == {"number": 3, "note": "x"}
    made = await written(AvroSerializer(registry, Nested), Nested([order]), "u")
    assert await AvroDeserializer(registry)(made) == {"orders": [{"number": 3, "note": "x"}]}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"number": "x"}, r"Order: shop\.Order\.number is 'x', and must be long"),
        ({}, r"shop\.Order\.number is None, and must be long"),
        ({"number": 1, "nte": "x"}, "more fields than the schema specifies: nte"),
        ({"number": 2**63}, "number is 9223372036854775808, and must be long"),
        (5, "it is 5, and must be record"),
        ({"number": 1, "note": 5}, r"note is 5, and must be (null|string)"),
    ],
)
async def test_a_dict_that_does_not_fit(registry: SchemaRegistryClient, data: Any, said: str) -> None:
    serializer = AvroSerializer(registry, SCHEMA)
    await serializer.prepare("t")
    with pytest.raises(SerializationException, match=said):
        serializer.serialize("t", [], data)


async def test_objects_that_do_not_fit(registry: SchemaRegistryClient) -> None:
    for kind, good in ((Order, Order(1)), (Nested, Nested())):
        serializer: AvroSerializer[Any] = AvroSerializer(registry, kind)
        await written(serializer, good, kind.__name__)
        with pytest.raises(SerializationException, match=f"takes {kind.__name__}, not dict"):
            serializer.serialize(kind.__name__, [], {"number": 1})
    bad: Any = Order("x")  # type: ignore[arg-type]
    with pytest.raises(SerializationException, match="number is 'x', and must be long"):
        await written(AvroSerializer(registry, Order), bad, "Order")
    with pytest.raises(SerializationException, match="number is 'x', and must be long"):
        await written(AvroSerializer(registry, Nested), Nested([bad]), "Nested")
    worse: Any = 5
    with pytest.raises(
        SerializationException, match="does not fit the Avro schema Nested: AttributeError: 'int' object"
    ):
        await written(AvroSerializer(registry, Nested), Nested([worse]), "Nested")


async def test_the_latest_version_is_written_with(registry: SchemaRegistryClient) -> None:
    newer = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "paid", "type": "boolean", "default": False}]}
    await AvroSerializer(registry, SCHEMA).prepare("t")
    await AvroSerializer(registry, newer).prepare("t")
    latest = AvroSerializer(registry, use_latest_version=True)
    assert await written(latest, {"number": 1}) == prefix(2) + b"\x02\x00\x00"
    by_id = AvroSerializer(registry, use_schema_id=1)
    assert await written(by_id, {"number": 1}) == prefix(1) + b"\x02\x00"
    of_class = AvroSerializer(registry, Order, use_latest_version=True)
    assert await written(of_class, Order(1)) == prefix(2) + b"\x02\x00\x00"


async def test_a_field_that_the_latest_version_lacks_is_not_left_out(registry: SchemaRegistryClient) -> None:
    await AvroSerializer(registry, {**SCHEMA, "fields": [{"name": "number", "type": "long"}]}).prepare("t")
    serializer = AvroSerializer(registry, Order, use_latest_version=True)
    await serializer.prepare("t")
    with pytest.raises(SerializationException, match="more fields than the schema specifies: note"):
        serializer.serialize("t", [], Order(1, "x"))


async def test_references(registry: SchemaRegistryClient) -> None:
    await registry.register_schema("customer", Schema('{"type":"record","name":"shop.Customer","fields":[]}'))
    await registry.register_schema(
        "order",
        Schema(
            '{"type":"record","name":"shop.Order","fields":[{"name":"by","type":"shop.Customer"}]}',
            references=(SchemaReference("shop.Customer", "customer", 1),),
        ),
    )
    schema = Schema(
        '{"type":"record","name":"shop.Cart","fields":[{"name":"o","type":"shop.Order"},'
        '{"name":"c","type":"shop.Customer"}]}',
        references=(SchemaReference("shop.Order", "order", 1), SchemaReference("shop.Customer", "customer", 1)),
    )
    data: dict[str, Any] = {"o": {"by": {}}, "c": {}}
    serializer = AvroSerializer(registry, schema, subject_name_strategy="TopicRecordNameStrategy")
    made = await written(serializer, data)
    assert made == prefix(3)
    assert await AvroDeserializer(registry)(made) == data
    assert (await registry.get_latest_version("t-shop.Cart")).schema == schema


async def test_a_reference_that_is_missing(registry: SchemaRegistryClient) -> None:
    schema = Schema('{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]}')
    with pytest.raises(IllegalArgumentException, match="the Avro schema cannot be used: UnknownType: B"):
        AvroSerializer(registry, schema)


async def test_a_reader_schema_resolves_versions(registry: SchemaRegistryClient) -> None:
    made = await written(AvroSerializer(registry, {**SCHEMA, "fields": SCHEMA["fields"][:1]}), {"number": 1})
    assert await AvroDeserializer(registry, SCHEMA)(made) == {"number": 1, "note": None}
    with pytest.raises(SerializationException, match="SchemaResolutionError"):
        await AvroDeserializer(registry, '"long"')(made)


async def test_broken_data(registry: SchemaRegistryClient) -> None:
    made = await written(AvroSerializer(registry, SCHEMA), {"number": 1, "note": "abc"})
    deserialize = AvroDeserializer(registry)
    with pytest.raises(SerializationException, match="1 bytes are left over"):
        await deserialize(made + b"x")
    for length in range(5, len(made)):
        with pytest.raises(SerializationException, match="not what the schema with id 1 says"):
            await deserialize(made[:length])


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "no JSON"),
        ("string", "no JSON"),
        ({"type": "record"}, "cannot be used"),
        ('"text"', "UnknownType"),
        (Schema("{}", "JSON"), "one of JSON"),
        (5, "the schema is of type int"),
        (int, "neither a dataclass nor a pydantic model"),
    ],
)
def test_a_text_that_is_no_schema_is_refused(registry: SchemaRegistryClient, schema: Any, said: str) -> None:
    with pytest.raises(IllegalArgumentException, match=said):
        AvroSerializer(registry, schema)


async def test_a_namespace_for_a_class(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    await AvroSerializer(registry, Order, namespace="shop", subject_name_strategy="RecordNameStrategy").prepare("t")
    assert list(fake.subjects) == ["shop.Order"]
