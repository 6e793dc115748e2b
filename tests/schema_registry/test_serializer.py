"""Serializers within producers: the registry is asked before the first record, and no longer then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("fastavro", reason="fastavro is not installed")

from aioproducer import KafkaProducer, Outcome, sync
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ConfigException, DeliveryError, SerializationException, TimeoutException
from aioproducer.reader import PartitionReader
from aioproducer.schema_registry import (
    AvroDeserializer,
    AvroSerializer,
    IncompatibleSchemaException,
    JsonSchemaSerializer,
    Schema,
    SchemaNotFoundException,
    SchemaRegistryClient,
    SchemaRegistryUnavailableException,
)
from tests.support.leaks import no_leaks as no_leaks
from tests.support.schema_registry.fake_registry import FakeRegistry

pytestmark = pytest.mark.usefixtures("no_leaks")


@dataclass
class Order:
    number: int


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def registry(fake: FakeRegistry) -> SchemaRegistryClient:
    return client(fake.url)


def client(url: str, **more: Any) -> SchemaRegistryClient:
    return SchemaRegistryClient(url, **{"max_retries": 1, "retries_wait_ms": 1, "retries_max_wait_ms": 1, **more})


def values(cluster: EmbeddedCluster, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in cluster.log(topic).records()]


async def test_one_request_for_a_thousand_records(
    cluster: EmbeddedCluster, fake: FakeRegistry, registry: SchemaRegistryClient
) -> None:
    serializer = AvroSerializer(registry, Order)
    async with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, value_serializer=serializer, linger_ms=0
    ) as producer:
        await asyncio.gather(*(producer.send("orders", Order(number), partition=0) for number in range(1000)))
        await producer.send("orders", None, partition=0)
        await producer.send("others", Order(5))
    assert fake.paths == ["POST /subjects/orders-value/versions", "POST /subjects/others-value/versions"]
    deserialize = AvroDeserializer(registry)
    async with PartitionReader(cluster.bootstrap_servers, "orders", 0) as reader:
        found = [await deserialize(record.value) async for record in reader.read_to_end()]
    assert found == [*({"number": number} for number in range(1000)), None]


async def test_a_prepared_record_does_not_wait(
    cluster: EmbeddedCluster, fake: FakeRegistry, registry: SchemaRegistryClient
) -> None:
    key, value = AvroSerializer(registry, '"string"', is_key=True), AvroSerializer(registry, Order)
    await asyncio.gather(key.prepare("orders", "others"), value.prepare("orders"))
    made = value.serialize("orders", [], Order(1))
    assert isinstance(made, bytes)
    assert set(fake.subjects) == {"orders-key", "others-key", "orders-value"}
    async with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, key_serializer=key, value_serializer=value
    ) as producer:
        await producer.send("orders", Order(1), key="k")
    assert len(fake.requests) == 3


async def test_for_threads_too(fake: FakeRegistry, registry: SchemaRegistryClient, cluster: EmbeddedCluster) -> None:
    def send() -> None:
        with sync.KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, value_serializer=AvroSerializer(registry, Order)
        ) as producer:
            producer.send("orders", Order(1)).result(timeout=30)

    await asyncio.to_thread(send)
    assert len(values(cluster)) == 1


async def test_a_registry_that_is_down_loses_nothing_and_holds_up_nobody_for_ever(cluster: EmbeddedCluster) -> None:
    down = AvroSerializer(client("http://127.0.0.1:1"), Order)
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, value_serializer=down) as producer:
        ends = await asyncio.gather(
            *(producer.send("orders", Order(number)) for number in range(5)), return_exceptions=True
        )
        for error in ends:
            assert isinstance(error, SerializationException)
            assert isinstance(error, DeliveryError)
            assert error.outcome is Outcome.NOT_SENT
            assert isinstance(error.__cause__, SchemaRegistryUnavailableException)
            assert "no schema registry is available: http://127.0.0.1:1/" in str(error)
    assert not cluster.topics


async def test_records_wait_for_a_registry_that_comes_back(
    cluster: EmbeddedCluster, fake: FakeRegistry, registry: SchemaRegistryClient
) -> None:
    fake.failing = lambda method, path: (503, b"") if len(fake.requests) < 20 else None
    patient = AvroSerializer(client(fake.url, max_retries=100), Order)
    async with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, value_serializer=patient, linger_ms=0
    ) as producer:
        await asyncio.gather(*(producer.send("orders", Order(number), partition=0) for number in range(10)))
    found = [await AvroDeserializer(registry)(value) for value in values(cluster)]
    assert found == [{"number": number} for number in range(10)]


async def test_max_block_ms_bounds_the_wait(cluster: EmbeddedCluster) -> None:
    down = client("http://127.0.0.1:1", max_retries=1000, retries_wait_ms=3_600_000, retries_max_wait_ms=3_600_000)
    async with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, value_serializer=AvroSerializer(down, Order), max_block_ms=100
    ) as producer:
        with pytest.raises(TimeoutException, match="was not serialized"):
            await producer.send("orders", Order(1))


async def test_a_bad_record_ends_alone(cluster: EmbeddedCluster, registry: SchemaRegistryClient) -> None:
    async with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, value_serializer=AvroSerializer(registry, Order)
    ) as producer:
        bad: Any = Order("x")  # type: ignore[arg-type]
        first, second = producer.send("orders", bad), producer.send("orders", Order(1))
        with pytest.raises(SerializationException, match="number is 'x', and must be long"):
            await first
        await second
        with pytest.raises(SerializationException, match="number is 'x', and must be long"):
            await producer.send("orders", bad)
    assert len(values(cluster)) == 1


async def test_an_incompatible_schema_is_the_cause(
    cluster: EmbeddedCluster, fake: FakeRegistry, registry: SchemaRegistryClient
) -> None:
    fake.failing = lambda method, path: (409, {"error_code": 409, "message": "no"}) if method == "POST" else None
    async with KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, value_serializer=AvroSerializer(registry, Order)
    ) as producer:
        with pytest.raises(SerializationException, match="cannot become a version of 'orders-value'") as failed:
            await producer.send("orders", Order(1))
    assert isinstance(failed.value.__cause__, IncompatibleSchemaException)


class TestWhichSchema:
    async def test_it_is_looked_up_if_it_must_not_be_registered(
        self, fake: FakeRegistry, registry: SchemaRegistryClient
    ) -> None:
        serializer = AvroSerializer(registry, Order, auto_register_schemas=False)
        with pytest.raises(SchemaNotFoundException, match="the schema is no version of 'orders-value'"):
            await serializer.prepare("orders")
        assert fake.subjects == {}
        assert serializer.schema is not None
        await registry.register_schema("orders-value", serializer.schema)
        await serializer.prepare("orders")  # a failure is not remembered
        assert fake.paths[-1] == "POST /subjects/orders-value"

    async def test_normalize(self, fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
        await AvroSerializer(registry, Order, normalize_schemas=True).prepare("t")
        with pytest.raises(SchemaNotFoundException):
            await AvroSerializer(registry, Order, normalize_schemas=True, auto_register_schemas=False).prepare("u")
        assert fake.paths == [
            "POST /subjects/t-value/versions?normalize=true",
            "POST /subjects/u-value?normalize=true",
        ]

    async def test_a_strategy_of_ones_own(self, fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
        await AvroSerializer(registry, Order, subject_name_strategy=lambda topic, is_key, name: f"my-{name}").prepare(
            "t"
        )
        assert list(fake.subjects) == ["my-Order"]

    async def test_one_of_another_type(self, registry: SchemaRegistryClient) -> None:
        await registry.register_schema("t-value", Schema("{}", "JSON"))
        with pytest.raises(SerializationException, match="id 1 is one of JSON, and AvroSerializer writes AVRO"):
            await AvroSerializer(registry, use_latest_version=True).prepare("t")
        with pytest.raises(SerializationException, match="one of JSON, and AvroDeserializer reads AVRO"):
            await AvroDeserializer(registry)(b"\x00\x00\x00\x00\x01\x00")

    @pytest.mark.parametrize(
        ("options", "name", "said"),
        [
            (
                {"auto_register_schemas": True, "use_latest_version": True},
                "use.latest.version",
                "leave one of them out",
            ),
            ({"use_latest_version": True, "use_schema_id": 1}, "use.schema.id", "use.latest.version is there, too"),
            ({"subject_name_strategy": "Topic"}, "subject.name.strategy", "it must be one of"),
            ({"auto_register": True}, "auto_register", "unknown serializer config"),
        ],
    )
    def test_contradictory_options_are_refused(
        self, registry: SchemaRegistryClient, options: dict[str, Any], name: str, said: str
    ) -> None:
        for kind in (AvroSerializer, JsonSchemaSerializer):
            with pytest.raises(ConfigException, match=said) as refused:
                kind(registry, Order, **options)
            assert refused.value.name == name

    async def test_none_at_all(self, registry: SchemaRegistryClient) -> None:
        with pytest.raises(ConfigException, match=r"without a schema needs use\.latest\.version or use\.schema\.id"):
            await AvroSerializer(registry).prepare("t")


async def test_none_stays_none(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    serializer = AvroSerializer(registry, Order)
    assert serializer.serialize("t", [], None) is None
    assert fake.requests == []
    first = serializer.serialize("t", [], Order(1))
    assert isinstance(first, Awaitable)
    assert await first == b"\x00\x00\x00\x00\x01\x02"
