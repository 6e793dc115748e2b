"""Wrong uses of the package: type checkers find something on every line that is marked, and nowhere else.

The mark is a pattern for what each of them says there. They read this file; nobody runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aioproducer import KafkaProducer, ProducerConfigs, ProducerRecord, sync
from aioproducer.admin import KafkaAdmin
from aioproducer.integrations.aiohttp import kafka_context
from aioproducer.integrations.fastapi import Producer, kafka_lifespan
from aioproducer.reader import PartitionReader
from aioproducer.schema_registry import AvroSerializer, SchemaRegistryClient
from aioproducer.serializers import LongSerializer, StringSerializer
from aioproducer.testing import MockProducer, SyncMockProducer


@dataclass
class Order:
    number: int


def encode(order: Order) -> bytes:
    return b"%d" % order.number


def describe(order: Order) -> str:
    return str(order)


async def describe_later(order: Order) -> str:
    return str(order)


async def encode_later(order: Order) -> bytes:
    return encode(order)


async def stream(order: Order) -> AsyncIterator[bytes]:
    yield encode(order)


class UnfitLater:
    async def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: Order | None) -> str:
        return str(data)


class Unfit:
    def serialize(self, topic: str, data: Order) -> bytes:
        return encode(data)


# Configs

at = "a:9092"
KafkaProducer(bootstrap_servers=at, linger_msss=5)  # wrong: linger_msss
KafkaProducer(bootstrap_servers=at, linger_ms="five")  # wrong: linger_ms
KafkaProducer(bootstrap_servers=at, linger_ms=0.5)  # wrong: linger_ms
KafkaProducer(bootstrap_servers=at, acks=2)  # wrong: acks
KafkaProducer(bootstrap_servers=at, compression_type="gzp")  # wrong: compression_type
KafkaProducer(bootstrap_servers=at, enable_idempotence="yes")  # wrong: enable_idempotence
KafkaProducer(bootstrap_servers=at, partitioner_class=5)  # wrong: partitioner_class
KafkaProducer(bootstrap_servers=at, partitioner_class=encode)  # wrong: partitioner_class
KafkaProducer(bootstrap_servers=at, interceptor_classes=[5])  # wrong: int
KafkaProducer(bootstrap_servers=at, metric_reporters=encode)  # wrong: metric_reporters
KafkaProducer(bootstrap_servers=at, ssl_context="ca.pem")  # wrong: ssl_context
KafkaProducer(bootstrap_servers=at, ssl_engine_factory_class=encode)  # wrong: ssl_engine_factory_class
KafkaProducer(bootstrap_servers=at, ssl_keystore_type="JCEKS")  # wrong: ssl_keystore_type
KafkaProducer(linger_ms=5)  # wrong: bootstrap_servers
KafkaProducer(at)  # wrong: argument
configs: ProducerConfigs = {"bootstrap_servers": at, "linger.ms": 5}  # wrong: linger.ms
KafkaAdmin(bootstrap_servers=at, batch_size=5)  # wrong: batch_size
PartitionReader(at, "t", 0, isolation_level="committed")  # wrong: isolation_level
PartitionReader(at, "t", "0")  # wrong: str|partition
sync.KafkaProducer(bootstrap_servers=at, linger_msss=5)  # wrong: linger_msss
MockProducer(linger_msss=5)  # wrong: linger_msss
SyncMockProducer(linger_ms="five")  # wrong: linger_ms
kafka_lifespan(bootstrap_servers=at, linger_msss=5)  # wrong: linger_msss
kafka_context(bootstrap_servers=at, linger_ms="five")  # wrong: linger_ms

# Serializers

KafkaProducer(bootstrap_servers=at, value_serializer=5)  # wrong: value_serializer
KafkaProducer(bootstrap_servers=at, value_serializer=describe)  # wrong: value_serializer
KafkaProducer(bootstrap_servers=at, key_serializer=Unfit())  # wrong: key_serializer
KafkaProducer(bootstrap_servers=at, value_serializer=describe_later)  # wrong: value_serializer
KafkaProducer(bootstrap_servers=at, value_serializer=UnfitLater())  # wrong: value_serializer
KafkaProducer(bootstrap_servers=at, key_serializer=stream)  # wrong: key_serializer


registry = SchemaRegistryClient("https://a:8081")
SchemaRegistryClient("https://a:8081", max_retry=5)  # wrong: max_retry
AvroSerializer(registry, Order, auto_register_schemas="yes")  # wrong: auto_register_schemas|AvroSerializer
of_avro = KafkaProducer(bootstrap_servers=at, value_serializer=AvroSerializer(registry, Order))


async def of_schemas() -> None:
    await of_avro.send("t", "text")  # wrong: str|value


async def of_bytes(producer: KafkaProducer) -> None:
    await producer.send("t", "text")  # wrong: str|value
    await producer.send("t", b"value", key="key")  # wrong: str|key
    await producer.send("t", 5)  # wrong: int|value
    await producer.send("t", b"value", b"key")  # wrong: bytes|overloads
    await producer.send(b"t", b"value")  # wrong: bytes|topic
    await producer.send("t", b"value", partition="0")  # wrong: str|partition
    await producer.send("t", b"value", headers={"name": b"value"})  # wrong: dict
    await producer.send("t", b"value", headers=[("name", "value")])  # wrong: str|headers
    await producer.send(ProducerRecord("t", "text"))  # wrong: str
    await producer.enqueue("t", "text")  # wrong: str|value
    await producer.send_many("t", ["text"])  # wrong: str
    await producer.send_many("t", b"value")  # wrong: bytes|values


async def of_orders(producer: KafkaProducer[str, Order]) -> None:
    await producer.send("t", b"value")  # wrong: bytes|value
    await producer.send("t", Order(1), key=5)  # wrong: int|key
    await producer.enqueue("t", value="text")  # wrong: str|value
    await producer.send_many("t", [Order(1)], keys=[1])  # wrong: int
    await of_bytes(producer)  # wrong: KafkaProducer


async def of_others() -> None:
    by_path = KafkaProducer(bootstrap_servers=at, value_serializer="mine.Encode")
    await by_path.send("t", 5, key="text")  # wrong: str|key
    by_class = KafkaProducer(bootstrap_servers=at, value_serializer=StringSerializer, key_serializer=LongSerializer())
    await by_class.send("t", 5)  # wrong: int|value
    await by_class.send("t", key="text")  # wrong: str|key
    by_function = KafkaProducer(bootstrap_servers=at, value_serializer=encode)
    await of_orders(by_function)  # wrong: KafkaProducer
    by_coroutine = KafkaProducer(bootstrap_servers=at, value_serializer=encode_later)
    await by_coroutine.send("t", "text")  # wrong: str|value
    _: KafkaProducer[str, Order] = KafkaProducer(bootstrap_servers=at, value_serializer=str.encode)  # wrong: str


async def calls(producer: KafkaProducer) -> None:
    metadata = await producer.send("t")
    metadata.offset.lower()  # wrong: lower
    metadata.offset = 5  # wrong: offset
    delivery = await producer.enqueue("t")
    await asyncio.wait([delivery])  # wrong: Delivery
    delivery.result(timeout=5)  # wrong: timeout
    await producer.close(within=5)  # wrong: within
    producer.flush().result()  # wrong: result
    await producer.no_such_call()  # wrong: no_such_call
    KafkaProducer.no_such_call  # wrong: no_such_call  # noqa: B018


async def service(producer: Producer) -> None:
    await producer.send("t", "text")  # wrong: str|value


def threads(producer: sync.KafkaProducer[Any, Order]) -> None:
    producer.send("t", "text")  # wrong: str|value
    producer.send_many("t", ["text"])  # wrong: str
    producer.flush("soon")  # wrong: str|timeout
