"""The clients that the service of ``app.py`` runs on, each as a function that sends a record.

All of them are idempotent, wait for all replicas and 5 ms for more records, as is Kafka's default.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

T = TypeVar("T")

TOPIC = "orders"
LINGER_MS = 5
AIO_BATCH = 50
"""Records that confluent's AIOProducer collects before it hands them to librdkafka: what serves it best here."""

Send = Callable[[list[bytes], bytes], Awaitable[tuple[int, int]]]
"""Values and their key; partition and offset of the first record, when all are acknowledged."""

Sending = Callable[[str], AbstractAsyncContextManager[Send]]
"""The client with these bootstrap servers, from its start to its end."""


async def _first(deliveries: list[Awaitable[T]]) -> T:
    """What became of the first, once all have ended. One after the other: what is done already costs no task."""
    first, *others = deliveries
    done = await first
    for other in others:
        await other
    return done


@contextlib.asynccontextmanager
async def aioproducer(servers: str) -> AsyncIterator[Send]:
    from aioproducer import KafkaProducer

    async with KafkaProducer(bootstrap_servers=servers, linger_ms=LINGER_MS) as producer:

        async def send(values: list[bytes], key: bytes) -> tuple[int, int]:
            metadata = await _first([producer.send(TOPIC, value, key=key) for value in values])
            return metadata.partition, metadata.offset

        yield send


@contextlib.asynccontextmanager
async def aiokafka(servers: str) -> AsyncIterator[Send]:
    from aiokafka import AIOKafkaProducer

    async with AIOKafkaProducer(
        bootstrap_servers=servers, acks="all", enable_idempotence=True, linger_ms=LINGER_MS
    ) as producer:

        async def send(values: list[bytes], key: bytes) -> tuple[int, int]:
            metadata = await _first([await producer.send(TOPIC, value, key=key) for value in values])
            return metadata.partition, metadata.offset

        yield send


@contextlib.asynccontextmanager
async def confluent_kafka_aio(servers: str) -> AsyncIterator[Send]:
    from confluent_kafka.aio import AIOProducer

    config: dict[str, Any] = {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": LINGER_MS}
    producer = AIOProducer(config, batch_size=AIO_BATCH, buffer_timeout=0.1)
    try:

        async def send(values: list[bytes], key: bytes) -> tuple[int, int]:
            message = await _first([await producer.produce(TOPIC, value, key) for value in values])
            return message.partition(), message.offset()

        yield send
    finally:
        await producer.close()


@contextlib.asynccontextmanager
async def nothing(servers: str) -> AsyncIterator[Send]:
    """Sends nothing, but lets its callers wait as long as for records, and answers all that wait at once."""
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[None]] = []

    def answer() -> None:
        for one in waiting:
            if not one.done():
                one.set_result(None)
        waiting.clear()

    async def send(values: list[bytes], key: bytes) -> tuple[int, int]:
        if not waiting:
            loop.call_later(LINGER_MS / 1000, answer)
        waiting.append(loop.create_future())
        await waiting[-1]
        return 0, 0

    yield send


REFERENCE, FLOOR = "aioproducer", "nothing"
CLIENTS: dict[str, Sending] = {
    REFERENCE: aioproducer,
    "aiokafka": aiokafka,
    "confluent-kafka-aio": confluent_kafka_aio,
    FLOOR: nothing,
}
"""By name, in the order in which they take turns. ``FLOOR`` sends nothing: what the framework alone can do."""
