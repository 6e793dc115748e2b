"""Waiting for many deliveries at once."""

from __future__ import annotations

from collections.abc import Iterable

from aioproducer.producer.delivery import Delivery


async def wait_all(deliveries: Iterable[Delivery]) -> None:
    """Returns when every delivery is done, delivered or failed, without making a task or a future for each."""
    for delivery in deliveries:
        while not delivery.done():
            await delivery.settled()
