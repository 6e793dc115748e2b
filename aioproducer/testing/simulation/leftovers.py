"""Checks that nothing is left on the loop when all producers are closed."""

from __future__ import annotations

import asyncio
from typing import Any

from aioproducer.testing.simulation.surroundings import Surroundings


def check_nothing_left(around: Surroundings) -> None:
    """Checks that only the brokers, which still run, have tasks, connections or timers."""
    names = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    tasks = [name for name in names if not name.startswith("data-plane-kafka-")]
    if tasks:
        around.violations.add("no task is left", sorted(tasks))
    ends = [end.name for end in around.network.open if end.is_client and end.transport is not None]
    if ends:
        around.violations.add("no connection is left", ends)
    callbacks: list[Any] = [getattr(timer, "_callback") for timer in around.loop.timers()]  # noqa: B009
    timers = [
        f"{callback.__module__}.{callback.__qualname__}"
        for callback in callbacks
        if not getattr(callback, "__module__", "").startswith("aioproducer.broker")
    ]
    if timers:
        around.violations.add("no timer is left", sorted(timers))
