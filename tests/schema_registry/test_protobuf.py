"""Protobuf: wire format, imports, and messages that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.errors import IllegalArgumentException, SerializationException
from aioproducer.schema_registry import (
    ProtobufDeserializer,
    ProtobufSerializer,
    Schema,
    SchemaNotFoundException,
    SchemaReference,
    SchemaRegistryClient,
)
from aioproducer.schema_registry.protobuf import message_names
from aioproducer.schema_registry.wire_format import prefix
from tests.support.schema_registry.fake_registry import FakeRegistry
from tests.support.schema_registry.protobuf_messages import Customer, Line, Order


@pytest.fixture
def registry(fake: FakeRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient(fake.url, max_retries=0)


async def written(serializer: ProtobufSerializer[Any], data: Any) -> bytes:
    await serializer.prepare("t")
    made = serializer.serialize("t", [], data)
    assert isinstance(made, bytes)
    return made


@pytest.mark.parametrize(
    ("message", "indexes"),
    [(Customer(name="a"), [0]), (Order(number=5), [1]), (Line(sku="x"), [1, 0])],
    ids=["first", "second", "nested"],
)
async def test_the_message_is_found_by_its_indexes(
    fake: FakeRegistry, registry: SchemaRegistryClient, message: Any, indexes: list[int]
) -> None:
    made = await written(ProtobufSerializer(registry, type(message)), message)
    assert made == prefix(fake.subjects["t-value"][0], indexes) + message.SerializeToString()
    assert await ProtobufDeserializer(registry, type(message))(made) == message


async def test_imports_are_registered_first_and_referred_to(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    await ProtobufSerializer(registry, Order).prepare("t")
    assert set(fake.subjects) == {"shop/customer.proto", "t-value"}
    (schema_id,) = fake.subjects["t-value"]
    schema = await registry.get_schema(schema_id)
    assert schema.references == (SchemaReference("shop/customer.proto", "shop/customer.proto", 1),)
    assert message_names(schema) == {(0,): "shop.Unused", (1,): "shop.Order", (1, 0): "shop.Order.Line"}


async def test_imports_are_looked_up_too(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    serializer = ProtobufSerializer(registry, Order, auto_register_schemas=False)
    with pytest.raises(SchemaNotFoundException, match=r"shop/customer\.proto"):
        await serializer.prepare("t")
    await ProtobufSerializer(registry, Order).prepare("t")
    await serializer.prepare("t")
    assert serializer.serialize("t", [], Order()) == prefix(2, [1])


async def test_the_latest_version_decides_where_the_message_is(
    fake: FakeRegistry, registry: SchemaRegistryClient
) -> None:
    await ProtobufSerializer(registry, Order).prepare("t")
    latest = ProtobufSerializer(registry, Line, use_latest_version=True)
    assert await written(latest, Line()) == prefix(2, [1, 0])
    with pytest.raises(SerializationException, match=r"no message shop\.Customer"):
        await ProtobufSerializer(registry, Customer, use_latest_version=True).prepare("t")


async def test_a_registry_that_has_the_text_of_the_file(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    text = 'syntax = "proto3"; package shop; message Customer { string name = 1; }'
    await registry.register_schema("t-value", Schema(text, "PROTOBUF"))
    made = await written(ProtobufSerializer(registry, Customer, use_latest_version=True), Customer(name="a"))
    assert made.startswith(prefix(1, [0]))
    assert await ProtobufDeserializer(registry, Customer)(made) == Customer(name="a")


async def test_the_record_name_is_the_messages(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    await ProtobufSerializer(registry, Line, subject_name_strategy="RecordNameStrategy").prepare("t")
    assert "shop.Order.Line" in fake.subjects


async def test_another_message_is_refused(registry: SchemaRegistryClient) -> None:
    serializer = ProtobufSerializer(registry, Order)
    made = await written(serializer, Order(number=1))
    with pytest.raises(SerializationException, match=r"takes shop\.Order, not Line"):
        serializer.serialize("t", [], Line())
    with pytest.raises(SerializationException, match=r"the message shop\.Order, and not shop\.Order\.Line"):
        await ProtobufDeserializer(registry, Line)(made)
    with pytest.raises(SerializationException, match=r"the message \[7\], and not"):
        await ProtobufDeserializer(registry, Line)(prefix(2, [7]))


async def test_broken_data(registry: SchemaRegistryClient) -> None:
    made = await written(ProtobufSerializer(registry, Customer), Customer(name="abc"))
    deserialize = ProtobufDeserializer(registry, Customer)
    with pytest.raises(SerializationException, match="8 bytes are not what the schema with id 1 says: DecodeError"):
        await deserialize(made[:-3])
    with pytest.raises(SerializationException, match="message indexes"):
        await deserialize(made[:5])
    assert await deserialize(None) is None


@pytest.mark.parametrize("message", [Order(), dict, "shop.Order", None])
def test_a_value_that_is_no_message_class_is_refused(registry: SchemaRegistryClient, message: Any) -> None:
    with pytest.raises(IllegalArgumentException, match="no class of messages"):
        ProtobufSerializer(registry, message)
