"""A real registry, and Confluent's own serializers and deserializers, in both directions."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

pytest.importorskip("httpx", reason="httpx is not installed")
pytest.importorskip("fastavro", reason="fastavro is not installed")
pytest.importorskip("jsonschema", reason="jsonschema is not installed")
pytest.importorskip("pydantic", reason="pydantic is not installed")
pytest.importorskip("confluent_kafka.schema_registry.avro", reason="confluent-kafka[schemaregistry] is not installed")

from confluent_kafka.schema_registry import SchemaRegistryClient as ConfluentClient
from confluent_kafka.schema_registry import avro, json_schema, protobuf
from confluent_kafka.serialization import MessageField, SerializationContext

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import SerializationException
from aioproducer.reader import PartitionReader
from aioproducer.schema_registry import (
    AvroDeserializer,
    AvroSerializer,
    IncompatibleSchemaException,
    InvalidSchemaException,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
    Schema,
    SchemaNotFoundException,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryUnavailableException,
)
from aioproducer.testing.apicurio import Apicurio, running_apicurio
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from tests.support.schema_registry.protobuf_messages import Customer, Line, Order


@dataclass
class Item:
    sku: str
    count: int = 1


@dataclass
class Cart:
    number: int
    items: list[Item] = field(default_factory=list)
    note: str | None = None


CARTS = [Cart(1), Cart(2, [Item("ä"), Item("b", 5)], "x"), Cart(-(2**40))]


@pytest.fixture(scope="module")
def apicurio() -> Iterator[Apicurio]:
    with running_apicurio() as apicurio:
        yield apicurio


@pytest.fixture
def registry(apicurio: Apicurio) -> SchemaRegistryClient:
    return SchemaRegistryClient(apicurio.url)


@pytest.fixture
def confluent(apicurio: Apicurio) -> Iterator[Any]:
    with ConfluentClient({"url": apicurio.url}) as confluent:
        yield confluent


@pytest.fixture
def topic() -> str:
    """One that no other test has: subjects stay."""
    return f"t-{uuid.uuid4().hex[:8]}"


def context(topic: str) -> Any:
    return SerializationContext(topic, MessageField.VALUE)


async def written(serializer: Any, topic: str, data: Any) -> bytes:
    await serializer.prepare(topic)
    made = serializer.serialize(topic, [], data)
    assert isinstance(made, bytes)
    return made


class TestWithConfluents:
    async def test_avro(self, registry: SchemaRegistryClient, confluent: Any, topic: str) -> None:
        ours = AvroSerializer(registry, Cart)
        assert ours.schema is not None
        theirs = avro.AvroSerializer(confluent, ours.schema.text)
        read_theirs, read_ours = AvroDeserializer(registry), avro.AvroDeserializer(confluent)
        for cart in CARTS:
            made = await written(ours, topic, cart)
            assert read_ours(made, context(topic)) == asdict(cart)
            assert theirs(asdict(cart), context(topic)) == made
            assert await read_theirs(made) == asdict(cart)

    async def test_json(self, registry: SchemaRegistryClient, confluent: Any, topic: str) -> None:
        ours = JsonSchemaSerializer(registry, Cart)
        assert ours.schema is not None
        theirs = json_schema.JSONSerializer(ours.schema.text, confluent)
        read_ours = json_schema.JSONDeserializer(ours.schema.text, schema_registry_client=confluent)
        read_theirs = JsonSchemaDeserializer(registry, json_fail_invalid_schema=True)
        for cart in CARTS:
            made = await written(ours, topic, cart)
            assert read_ours(made, context(topic)) == asdict(cart)
            back = theirs(asdict(cart), context(topic))
            assert back[:5] == made[:5]
            assert await read_theirs(back) == asdict(cart)

    @pytest.mark.parametrize(
        "message",
        [Customer(name="a"), Order(number=5, customer=Customer(name="b"), at={"seconds": 7}), Line(sku="x")],
        ids=["first", "second", "nested"],
    )
    async def test_protobuf(self, registry: SchemaRegistryClient, confluent: Any, topic: str, message: Any) -> None:
        ours = ProtobufSerializer(registry, type(message))
        theirs = protobuf.ProtobufSerializer(type(message), confluent, {"use.deprecated.format": False})
        read_ours = protobuf.ProtobufDeserializer(
            type(message), {"use.deprecated.format": False}, schema_registry_client=confluent
        )
        made = await written(ours, topic, message)
        assert read_ours(made, context(topic)) == message
        back = theirs(message, context(topic))
        assert back == made
        assert await ProtobufDeserializer(registry, type(message))(back) == message


class TestRegistry:
    async def test_an_incompatible_schema(self, registry: SchemaRegistryClient, topic: str) -> None:
        subject = f"{topic}-value"
        await AvroSerializer(registry, Item).prepare(topic)
        await registry.set_compatibility("BACKWARD", subject)
        assert await registry.get_compatibility(subject) == "BACKWARD"
        schema = {"type": "record", "name": "Item", "fields": [{"name": "price", "type": "double"}]}
        assert await registry.test_compatibility(subject, Schema(json.dumps(schema)))
        with pytest.raises(IncompatibleSchemaException) as failed:
            await AvroSerializer(registry, schema).prepare(topic)
        assert (failed.value.subject, failed.value.version) == (subject, 1)
        assert failed.value.differences == (
            "the field 'price' (double) is new and has no default",
            "the field 'sku' is gone, and had no default",
            "the field 'count' is gone",
        )
        schema["fields"] = [{"name": "price", "type": "double", "default": 0.0}]
        await AvroSerializer(registry, schema).prepare(topic)
        assert await registry.get_versions(subject) == [1, 2]

    async def test_lookups_latest_and_ids(self, registry: SchemaRegistryClient, topic: str) -> None:
        with pytest.raises(SchemaNotFoundException):
            await AvroSerializer(registry, Item, auto_register_schemas=False).prepare(topic)
        first = await written(AvroSerializer(registry, Item), topic, Item("a"))
        assert await written(AvroSerializer(registry, Item, auto_register_schemas=False), topic, Item("a")) == first
        latest = AvroSerializer(registry, use_latest_version=True)
        assert await written(latest, topic, {"sku": "a"}) == first
        schema_id = (await registry.get_latest_version(f"{topic}-value")).id
        assert await written(AvroSerializer(registry, use_schema_id=schema_id), topic, {"sku": "a"}) == first
        with pytest.raises(SchemaNotFoundException):
            await registry.get_schema(2**31 - 1)

    async def test_strategies(self, registry: SchemaRegistryClient, topic: str) -> None:
        for strategy in ("RecordNameStrategy", "TopicRecordNameStrategy"):
            await AvroSerializer(
                registry, Item, namespace=topic.replace("-", "_"), subject_name_strategy=strategy
            ).prepare(topic)
        name = f"{topic.replace('-', '_')}.Item"
        assert {name, f"{topic}-{name}"} <= set(await registry.get_subjects())

    async def test_references(self, registry: SchemaRegistryClient, topic: str) -> None:
        item, cart = f"Item{uuid.uuid4().hex[:8]}", Schema
        await registry.register_schema(item, Schema(f'{{"type":"record","name":"{item}","fields":[]}}'))
        schema = cart(
            f'{{"type":"record","name":"Cart","fields":[{{"name":"of","type":"{item}"}}]}}',
            references=(SchemaReference(item, item, 1),),
        )
        made = await written(AvroSerializer(registry, schema), topic, {"of": {}})
        assert await AvroDeserializer(registry)(made) == {"of": {}}
        missing = Schema(schema.text.replace(item, "Other"), references=(SchemaReference("Other", "Other", 7),))
        with pytest.raises((InvalidSchemaException, SchemaNotFoundException)):
            await registry.register_schema(f"{topic}-value", missing)

    async def test_an_invalid_schema(self, registry: SchemaRegistryClient, topic: str) -> None:
        with pytest.raises(InvalidSchemaException, match=f"the schema of '{topic}' was not registered"):
            await registry.register_schema(topic, Schema('{"type":"rec'))

    async def test_a_subject_with_any_name(self, registry: SchemaRegistryClient, topic: str) -> None:
        subject = f"{topic}/a b?&#%ä"
        assert (await registry.register_schema(subject, Schema('"int"'))).subject == subject
        assert (await registry.get_latest_version(subject)).version == 1
        assert await registry.delete_subject(subject) == [1]
        assert subject not in await registry.get_subjects()


async def test_on_real_kafka(kafka_431: ApacheKafka, registry: SchemaRegistryClient, topic: str) -> None:
    """Confluent's consumer side reads with PartitionReader's bytes what the producer has sent in a transaction."""
    async with KafkaProducer(
        bootstrap_servers=kafka_431.bootstrap_servers,
        transactional_id=topic,
        key_serializer=AvroSerializer(registry, '"string"', is_key=True),
        value_serializer=AvroSerializer(registry, Cart),
    ) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            await asyncio.gather(*(producer.send(topic, cart, key=str(cart.number), partition=0) for cart in CARTS))
    deserialize = AvroDeserializer(registry)
    async with PartitionReader(kafka_431.bootstrap_servers, topic, 0, isolation_level="read_committed") as reader:
        found = [(await deserialize(r.key), await deserialize(r.value)) async for r in reader.read_to_end()]
    assert found == [(str(cart.number), asdict(cart)) for cart in CARTS]


async def test_a_registry_that_goes_away_and_comes_back(topic: str) -> None:
    """What has its id goes on; a new topic fails, is told, and goes on when the registry is back."""
    with running_apicurio() as gone:
        registry = SchemaRegistryClient(gone.url, max_retries=1, retries_wait_ms=10)
        async with (
            EmbeddedCluster() as cluster,
            KafkaProducer(
                bootstrap_servers=cluster.bootstrap_servers, value_serializer=AvroSerializer(registry, Cart)
            ) as producer,
        ):
            await producer.send("known", CARTS[0])
            gone.stop()
            await producer.send("known", CARTS[1])
            with pytest.raises(SerializationException, match="no schema registry is available") as failed:
                await producer.send("new", CARTS[0])
            assert isinstance(failed.value.__cause__, SchemaRegistryUnavailableException)
            await producer.send("known", CARTS[2])
            assert len(list(cluster.log("known").records())) == 3
