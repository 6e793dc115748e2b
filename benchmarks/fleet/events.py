"""What happens to a fleet-sized cluster while records are sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.fleet.simulated_fleet import Fleet

WAVES: Final = 10
"""A rolling restart takes so many: no two replicas of a partition are down at once."""
DOWN: Final = 3.0
"""Seconds that a broker takes to restart."""
UNTIL_PREFERRED: Final = 1.0
"""Seconds after which a broker that is back leads its partitions again."""
UNTIL_NEXT: Final = 1.0
SESSION: Final = 9.0
"""broker.session.timeout.ms: the controller takes a silent broker for dead after so many seconds."""


@dataclass(frozen=True)
class Event:
    """Runs beside the load; returns when it is over, maybe before its last records have ended."""

    name: str
    title: str
    run: Callable[[Fleet], Awaitable[None]]
    seconds: float = 0.0
    """How much longer the load is watched."""


async def nothing(fleet: Fleet) -> None:
    """The load alone."""


async def refresh(fleet: Fleet) -> None:
    fleet.client.request_update()


async def storm(fleet: Fleet) -> None:
    fleet.cluster.give_away(range(0, fleet.cluster.brokers, WAVES))


async def rolling(fleet: Fleet) -> None:
    cluster = fleet.cluster
    for wave in range(WAVES):
        brokers = range(wave, cluster.brokers, WAVES)
        cluster.stop(brokers)
        fleet.stop(brokers)
        await asyncio.sleep(DOWN)
        fleet.start(brokers)
        cluster.start(brokers)
        await asyncio.sleep(UNTIL_PREFERRED)
        cluster.prefer()
        await asyncio.sleep(UNTIL_NEXT)


async def death(fleet: Fleet) -> None:
    victim = fleet.cluster.brokers - 1
    fleet.kill(victim)
    await asyncio.sleep(SESSION)
    fleet.cluster.stop([victim])


async def creation(fleet: Fleet) -> None:
    fleet.cluster.create("created")
    fleet.load.topics.append("created")


async def deletion(fleet: Fleet) -> None:
    deleted = fleet.load.topics[0]
    fleet.cluster.delete(deleted)
    await asyncio.sleep(1.0)
    fleet.load.topics.remove(deleted)


EVENTS: Final = (
    Event("steady", "the load alone", nothing, 10.0),
    Event("refresh", "all metadata once more", refresh, 5.0),
    Event("storm", "all leaders on a tenth of the brokers move at once", storm, 10.0),
    Event("rolling", f"all brokers restart, a {WAVES}th at a time, {DOWN:.0f} s each", rolling),
    Event("death", "a broker is silent for good; after 9 s its partitions have other leaders", death, 6.0),
    Event("creation", "a topic is created, and gets its share of the records", creation, 5.0),
    Event("deletion", "a topic is deleted, and gets its share of the records for one more second", deletion, 32.0),
)
