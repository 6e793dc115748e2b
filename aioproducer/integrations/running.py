"""A producer from the start of a service to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aioproducer import KafkaProducer

CLOSE_TIMEOUT: Final = 20.0
"""Seconds: less than the 30 that Kubernetes gives a service between SIGTERM and SIGKILL."""


@asynccontextmanager
async def running(close_timeout: float | None, config: Mapping[str, Any]) -> AsyncIterator[KafkaProducer[Any, Any]]:
    """Starts a producer; at the end delivers the records it has accepted, within ``close_timeout`` seconds.

    ``close_timeout`` is that of ``KafkaProducer.close``: None waits for all records, at most delivery.timeout.ms.
    """
    producer: KafkaProducer[Any, Any] = KafkaProducer(**config)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.close(close_timeout)
