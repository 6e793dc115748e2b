"""The controls that a transaction has over its records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aioproducer.errors import KafkaError


@dataclass(frozen=True, slots=True)
class RecordControl:
    """Calls of the Sender, which handles the records."""

    gate: Callable[[bool], None]
    """Accepts records or not."""
    flush: Callable[[], Awaitable[None]]
    """Returns when all records have ended."""
    give_up: Callable[[KafkaError], None]
    """Fails the records that are not under way."""
    ready: Callable[..., None]
    """Allows writes to these partitions."""
    fatal: Callable[[KafkaError], None]
    """Ends the producer."""
    passed: Callable[[], Awaitable[object]]
    """Returns when requests may have ended."""
