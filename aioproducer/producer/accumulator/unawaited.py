"""One of Python's own coroutines, which warn if nobody awaits them; compiled ones do not. Never compiled."""

from __future__ import annotations

from typing import Final

NAME: Final = "KafkaProducer.enqueue"


async def unawaited() -> None:
    """Dropped in the place of what ``enqueue`` returned, it warns by that name."""


unawaited.__qualname__ = NAME
