"""A producer from its start to its end, as part of a service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aioproducer import KafkaProducer


@asynccontextmanager
async def running(close_timeout: float | None, config: dict[str, Any]) -> AsyncIterator[KafkaProducer]:
    """Starts a producer; at the end what it accepted is delivered, for ``close_timeout`` seconds at most.

    ``close_timeout`` is that of ``KafkaProducer.close``: None waits for all, which delivery.timeout.ms bounds.
    """
    producer = KafkaProducer(**config)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.close(close_timeout)
