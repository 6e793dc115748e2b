"""A native Python coroutine, which warns if it is never awaited; compiled ones do not. Never compiled."""

from __future__ import annotations

from typing import Final

NAME: Final = "KafkaProducer.enqueue"


async def unawaited() -> None:
    """Dropped in place of the result of ``enqueue``, it warns under that name."""


unawaited.__qualname__ = NAME
