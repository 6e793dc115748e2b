"""A service under load while its broker restarts, and while it is itself terminated.

What is promised: every request that was answered 2xx is in the log once, no record is there twice, no request hangs
past its time-out, and a terminated service answers the requests that it has begun.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from aioproducer.broker import EmbeddedCluster
from benchmarks.services.http_load import HttpLoad, Reply
from benchmarks.services.process import Service, free_port, service

PARTITIONS = 6
LIMIT = 15.0
"""Seconds that a request may take: delivery.timeout.ms and max.block.ms of the examples, and some for the machine."""

DOWN = 0.5
"""Seconds that the broker is away."""

ENDED = (0, -15, 143)
"""The exit statuses of a terminated service: uvicorn sends itself the signal again at the end."""


@dataclass(frozen=True)
class Target:
    """A service, its path, and the place of a request's number in the body and in the record."""

    name: str
    command: Callable[[int], list[str]]
    path: str
    topic: str
    body: Callable[[int], bytes]


def numbered(number: int) -> bytes:
    """A body that the examples take as an order, a click and an event."""
    return json.dumps({"id": str(number), "customer": f"c{number % 50}", "total": 9.5, "page": "/"}).encode()


@dataclass(frozen=True)
class Trouble:
    """One run. ``answers`` counts by status; ``no answer`` are requests on connections that were just being closed."""

    service: str
    clients: int
    answers: dict[str, int]
    in_log: int
    longest_s: float
    problems: list[str] = field(default_factory=list)


async def in_trouble(target: Target, clients: int, seconds: float) -> Trouble:
    """The broker crashes in the middle of the load and is back soon; then the service gets SIGTERM, under load, too."""
    async with EmbeddedCluster() as cluster, _serving(target, cluster) as running:
        cluster.create_topic(target.topic, PARTITIONS)
        load = HttpLoad(running.port, target.path, target.body, clients)
        problems = []
        try:
            async with load.flowing(patience=LIMIT):
                await asyncio.sleep(seconds)
                await cluster.stop_node(0)
                await asyncio.sleep(DOWN)
                await cluster.start_node(0)
                await asyncio.sleep(seconds)
                unanswered = sum(reply.status is None for reply in load.replies)
                if unanswered:
                    problems.append(f"{unanswered} connections ended without an answer before SIGTERM")
                running.terminate()
                async with asyncio.timeout(LIMIT):
                    status = await running.ended()
                if status not in ENDED:
                    problems.append(f"its exit status is {status}")
        except TimeoutError:
            problems.append(f"it has not ended {LIMIT:.0f} s after SIGTERM")
        logged = _logged(cluster, target.topic)
    answers = Counter("no answer" if reply.status is None else str(reply.status) for reply in load.replies)
    longest = max((reply.seconds for reply in load.replies), default=0.0)
    problems += wrong(load.replies, logged, LIMIT)
    return Trouble(target.name, clients, dict(sorted(answers.items())), len(logged), longest, problems)


def _serving(target: Target, cluster: EmbeddedCluster) -> AbstractAsyncContextManager[Service]:
    port = free_port()
    return service(target.command(port), port, {"KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrap_servers})


def _logged(cluster: EmbeddedCluster, topic: str) -> list[int]:
    """The number in each record of the topic."""
    partitions = range(len(cluster.topic(topic).partitions))
    values = [record.value for partition in partitions for record in cluster.log(topic, partition).records()]
    return [int(json.loads(value)["id"]) for value in values if value is not None]


def wrong(replies: Sequence[Reply], logged: Collection[int], limit: float) -> list[str]:
    """What is not as promised, in words. ``logged`` has the number in each record, ``limit`` is in seconds."""
    times = Counter(logged)
    kept = [reply.number for reply in replies if reply.status is not None and 200 <= reply.status < 300]
    found = []
    if not kept:
        found.append("no request was answered 2xx")
    lost = [number for number in kept if not times[number]]
    if lost:
        found.append(f"{len(lost)} were answered 2xx and are not in the log, such as {lost[0]}")
    begun = [reply.number for reply in replies if reply.status is None and times[reply.number]]
    if begun:
        found.append(f"{len(begun)} were begun and not answered: they are in the log, such as {begun[0]}")
    doubled = [number for number, count in times.items() if count > 1]
    if doubled:
        found.append(f"{len(doubled)} are in the log more than once, such as {doubled[0]}")
    late = [reply.seconds for reply in replies if reply.seconds > limit]
    if late:
        found.append(f"{len(late)} took longer than {limit:.0f} s, {max(late):.1f} s at worst")
    return found
