"""Right uses of the package: type checkers find nothing wrong here. They read it; nobody runs it."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, assert_type
from unittest.mock import create_autospec

from aiohttp import web
from fastapi import Depends, FastAPI

from aioproducer import (
    BulkResult,
    Delivery,
    KafkaProducer,
    MetricsSnapshot,
    OAuthBearerToken,
    Outcome,
    PartitionInfo,
    ProducerConfigs,
    ProducerInterceptor,
    ProducerRecord,
    RecordMetadata,
    RoundRobinPartitioner,
    TopicPartition,
    TopicPartitions,
    Unit,
    sync,
    wait_all,
)
from aioproducer.admin import AdminConfigs, KafkaAdmin, NewTopic
from aioproducer.integrations.aiohttp import get_producer as get_producer_of
from aioproducer.integrations.aiohttp import kafka_context
from aioproducer.integrations.fastapi import Producer, add_error_handlers, get_producer, health_router, kafka_lifespan
from aioproducer.metrics_topic import MetricsTopicReporter
from aioproducer.reader import PartitionReader, ReaderConfigs
from aioproducer.schema_registry import (
    AvroSerializer,
    JsonSchemaSerializer,
    Schema,
    SchemaRegistryClient,
)
from aioproducer.serializers import ListSerializer, LongSerializer, Serializer, StringSerializer
from aioproducer.testing import MockProducer, SyncMockProducer

Data = bytes | bytearray | memoryview


class Contexts:
    def __call__(self) -> ssl.SSLContext:
        return ssl.create_default_context()


@dataclass
class Order:
    number: int


def encode(order: Order) -> bytes:
    return b"%d" % order.number


class OrderSerializer:
    def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: Order | None) -> bytes | None:
        headers.append(("schema", topic.encode()))
        return None if data is None else encode(data)


async def look_up(order: Order) -> bytes:
    return encode(order)


def from_cache(order: Order) -> bytes | Awaitable[bytes]:
    return look_up(order) if order.number else b""


class Registered:
    async def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: Order | None) -> bytes | None:
        return None if data is None else await look_up(data)


class Called:
    async def __call__(self, order: Order) -> bytearray:
        return bytearray(await look_up(order))


class Marking(ProducerInterceptor):
    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record._replace(value=record.value + b"!", headers=[("by", b"me")])


def first(
    topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None, partitions: TopicPartitions
) -> int:
    return partitions.available[0].partition


async def token() -> OAuthBearerToken:
    return OAuthBearerToken("token", expires_at=5)


class Tokens:
    def token(self) -> str:
        return "token"


# Configs

configs: ProducerConfigs = {"bootstrap_servers": ["a:9092", "b:9092"], "linger_ms": 5, "acks": 1}
KafkaProducer(**configs)
more: ProducerConfigs = {**configs, "batch_size": 100_000, "compression_type": "zstd", "security_protocol": "SASL_SSL"}
KafkaProducer(**more)
KafkaProducer(bootstrap_servers="a:9092", acks="all", enable_idempotence=True, transactional_id=None)
KafkaProducer(bootstrap_servers="a:9092", interceptor_classes=Marking, partitioner_class=RoundRobinPartitioner)
KafkaProducer(bootstrap_servers="a:9092", interceptor_classes=[Marking(), "mine.Other"], partitioner_class=first)
KafkaProducer(bootstrap_servers="a:9092", interceptor_classes=lambda record: record._replace(key=b"k"))
KafkaProducer(bootstrap_servers="a:9092", metric_reporters=[MetricsTopicReporter("metrics")])
KafkaProducer(bootstrap_servers="a:9092", ssl_context=ssl.create_default_context(), security_protocol="ssl")
KafkaProducer(bootstrap_servers="a:9092", ssl_engine_factory_class=ssl.create_default_context, security_protocol="ssl")
KafkaProducer(bootstrap_servers="a:9092", ssl_engine_factory_class=Contexts, ssl_enabled_protocols=["TLSv1.3"])
KafkaProducer(bootstrap_servers="a:9092", ssl_keystore_type="jks", ssl_keystore_password="p", config_providers="env")
KafkaProducer(bootstrap_servers="a:9092", sasl_mechanism="GSSAPI", sasl_kerberos_service_name="kafka")
KafkaProducer(bootstrap_servers="a:9092", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=token)
KafkaProducer(bootstrap_servers="a:9092", sasl_oauth_token_provider=lambda: OAuthBearerToken("token"))
KafkaProducer(bootstrap_servers="a:9092", sasl_oauth_token_provider=Tokens())
KafkaProducer(bootstrap_servers="a:9092", sasl_oauth_token_provider=Tokens)
anything: dict[str, Any] = json.loads("{}")
KafkaProducer(**anything)

# Keys and values follow from serializers

of_bytes = KafkaProducer(**configs)
of_orders = KafkaProducer(**configs, key_serializer=str.encode, value_serializer=encode)
of_objects = KafkaProducer(**configs, value_serializer=OrderSerializer())
of_classes = KafkaProducer(**configs, value_serializer=OrderSerializer, key_serializer=LongSerializer)
of_lists = KafkaProducer(**configs, value_serializer=ListSerializer(StringSerializer("utf-16")))
of_json = KafkaProducer(**configs, value_serializer=lambda value: json.dumps(value).encode())
of_a_path = KafkaProducer(**configs, value_serializer="org.apache.kafka.common.serialization.StringSerializer")
of_coroutines = KafkaProducer(**configs, key_serializer=from_cache, value_serializer=look_up)
of_async_objects = KafkaProducer(**configs, key_serializer=Called(), value_serializer=Registered())
of_async_classes = KafkaProducer(**configs, key_serializer=Called, value_serializer=Registered)
of_awaitables = KafkaProducer(**configs, value_serializer=lambda order: look_up(order))
said: KafkaProducer[str, Order] = KafkaProducer(
    **configs, key_serializer=str.encode, value_serializer=lambda order: b"%d" % order.number
)
of_text = KafkaProducer[str, str].from_config("bootstrap.servers=a:9092\nvalue.serializer=mine.Text")

registry = SchemaRegistryClient(["https://a:8081"], max_retries=5, basic_auth_user_info="user:password")
of_avro = KafkaProducer(
    **configs,
    key_serializer=AvroSerializer(registry, '"string"', is_key=True),
    value_serializer=AvroSerializer(registry, Order, subject_name_strategy="RecordNameStrategy"),
)
of_schemas = KafkaProducer(
    **configs,
    key_serializer=JsonSchemaSerializer(registry, Order, use_latest_version=True),
    value_serializer=AvroSerializer(registry, Schema("{}"), auto_register_schemas=False),
)

assert_type(of_bytes, KafkaProducer[Data, Data])
assert_type(of_orders, KafkaProducer[str, Order])
assert_type(of_text, KafkaProducer[str, str])
assert_type(of_coroutines, KafkaProducer[Order, Order])


def serializer() -> Serializer[Order]:
    return OrderSerializer()


def awaited_serializer() -> Serializer[Order]:
    return Registered()


async def take_bytes(producer: KafkaProducer) -> None:
    assert_type(producer.send("t"), Delivery)
    await producer.send("t", b"value", key=bytearray(b"key"), partition=1, timestamp_ms=0, headers=[("h", None)])
    await producer.send("t", None, key=memoryview(b"key"))
    await producer.send(ProducerRecord("t", b"value"))
    await producer.send(ProducerRecord("t", None, b"key", headers=(("h", b"1"),)))
    producer.send("t", b"nobody waits")


async def take_orders(producer: KafkaProducer[str, Order]) -> None:
    await producer.send("t", Order(1), key="k")
    await producer.send("t", None, key=None)
    await (await producer.enqueue("t", Order(1), key="k"))
    await (await producer.enqueue(ProducerRecord("t", Order(1), "k")))
    assert_type(await producer.send_many("t", [Order(1), None], keys=["a", None]), BulkResult)


async def take_others() -> None:
    await take_orders(of_orders)
    await take_orders(said)
    await of_objects.send("t", Order(1), key=b"k")
    await of_classes.send("t", Order(1), key=5)
    await of_async_objects.send("t", Order(1), key=Order(2))
    await of_async_classes.send("t", Order(1), key=Order(2))
    await of_awaitables.send("t", 5)
    await of_lists.send("t", ["a", "b"])
    await of_lists.send("t", ("a", None))
    await of_json.send("t", {"any": ["thing"]}, key=b"k")
    await of_a_path.send("t", "text")
    await of_avro.send("t", Order(1), key="k")
    await of_avro.send("t", None)
    await of_schemas.send("t", {"number": 1}, key=Order(1))


async def take_either(producer: KafkaProducer[str, Order | str]) -> None:
    await take_orders(producer)  # whoever takes both takes one of them


# Calls


async def calls(producer: KafkaProducer) -> None:
    async with producer as started:
        assert_type(started, KafkaProducer)
        metadata = await started.send("t", b"value")
        assert_type(metadata, RecordMetadata)
        assert_type(metadata.offset, int)
        offsets: list[int] = [metadata.offset, metadata.partition, metadata.timestamp_ms]
        assert_type(offsets, list[int])
        delivery = await started.enqueue("t", b"value")
        assert_type(delivery, Delivery)
        assert_type(delivery.result(), RecordMetadata)
        assert_type(await asyncio.gather(delivery, started.send("t")), tuple[RecordMetadata, RecordMetadata])
        await wait_all([delivery])
        await asyncio.wait([asyncio.ensure_future(delivery)])
        delivery.add_done_callback(lambda done: done.result().offset)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            task = group.create_task(started.enqueue("t", b"value"))
        assert_type(task.result(), Delivery)
        await started.flush()
        await started.close(timeout=5)
        assert_type(await started.partitions_for("t"), list[PartitionInfo])
        assert_type(started.metrics(), MetricsSnapshot)


async def transactions(producer: KafkaProducer[str, Order]) -> None:
    await producer.init_transactions()
    async with producer.transaction() as transaction:
        await transaction.send("t", Order(1))
        await transaction.send_offsets_to_transaction({TopicPartition("t", 0): 5}, "group")
    async with producer.unit() as unit:
        await unit.send("t", Order(1), key="key")
        await unit.send_offsets({TopicPartition("t", 0): 5}, "group")
    assert_type(unit, Unit[str, Order])
    assert_type(unit.result(), list[RecordMetadata])
    assert_type(unit.outcome, Outcome | None)


def threads() -> None:
    with sync.KafkaProducer(**configs, value_serializer=encode) as producer:
        assert_type(producer, sync.KafkaProducer[Data, Order])
        assert_type(producer.send("t", Order(1)).result(timeout=5).offset, int)
        producer.send(ProducerRecord("t", Order(1)))
        producer.send_many("t", (Order(number) for number in range(5)))


async def other_clients() -> None:
    options: ReaderConfigs = {
        "isolation_level": "read_committed",
        "default_api_timeout_ms": 5000,
        "fetch_max_wait_ms": 100,
    }
    async with PartitionReader("a:9092", "t", 0, "latest", **options) as reader:
        async for record in reader:
            assert_type(record.offset, int)
    of_admin: AdminConfigs = {"bootstrap_servers": "a:9092", "request_timeout_ms": 1000}
    async with KafkaAdmin(**of_admin) as admin:
        await admin.create_topic(NewTopic("t"))


# Services

app = FastAPI(lifespan=kafka_lifespan(bootstrap_servers="a:9092", linger_ms=1, close_timeout=25))
app_of_orders = FastAPI(lifespan=kafka_lifespan(**configs, value_serializer=encode, name="orders"))
app.include_router(health_router())
add_error_handlers(app)


@app.post("/")
async def create(producer: Producer, orders: Annotated[KafkaProducer[str, Order], Depends(get_producer)]) -> None:
    await producer.send("t", b"value")
    await orders.send("t", Order(1), key="k")


async def handle(request: web.Request) -> web.Response:
    orders: KafkaProducer[str, Order] = get_producer_of(request)
    await orders.send("t", Order(1))
    return web.Response()


service = web.Application()
service.cleanup_ctx.append(kafka_context(**configs, close_timeout=25))


# In tests


async def mocks() -> None:
    async with MockProducer(topics={"t": 4}, value_serializer=encode, linger_ms=0) as mock:
        await take_half(mock)
        assert_type(mock, MockProducer[Data, Order])
        assert_type(mock.history[0].topic, str)
    with SyncMockProducer(auto_complete=False, value_serializer=encode) as producer:
        producer.send("t", Order(1))
    spec = create_autospec(KafkaProducer, instance=True)
    await spec.send("t", b"value")


async def take_half(producer: KafkaProducer[bytes, Order]) -> None:
    await producer.send("t", Order(1), key=b"k")


handlers: list[Callable[[Delivery], object]] = [print]
