"""Creates producers for tests, with short time-outs and few arguments."""

from __future__ import annotations

import asyncio
from typing import Any

from aioproducer import DeliveryError, KafkaProducer, RecordMetadata

QUICK: dict[str, Any] = {
    "linger_ms": 0,
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 20,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 20,
    "request_timeout_ms": 5000,
    "delivery_timeout_ms": 10000,
    "max_block_ms": 5000,
}


def make_producer(servers: str, **config: Any) -> KafkaProducer[Any, Any]:
    """A producer without delays; another request.timeout.ms or linger.ms may need another delivery.timeout.ms."""
    return KafkaProducer(bootstrap_servers=servers, **{**QUICK, **config})


async def end_of(delivery: Any) -> RecordMetadata | DeliveryError:
    """The result of the delivery: the metadata or the error."""
    try:
        metadata: RecordMetadata = await delivery
        return metadata
    except DeliveryError as error:
        return error


async def turns(count: int) -> None:
    """Gives the loop this many turns."""
    for _ in range(count):
        await asyncio.sleep(0)


def all_memory_free(producer: KafkaProducer[Any, Any]) -> bool:
    metrics = producer.metrics()
    return metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"] and metrics["parked-bytes"] == 0
