"""Crashes and restarts brokers one at a time; every other one is the coordinator of the transactions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from aioproducer.admin import KafkaAdmin
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.kafka.kafka_libs import KafkaFailed
from aioproducer.testing.transactions.plan import Plan

_CATCHING_UP = 120.0
"""Seconds within which a node must be an in-sync replica again."""
_POLL = 0.2


@dataclass(frozen=True)
class Bounce:
    """One restart; ``seconds`` is the time from the node's end until all replicas are in sync again."""

    node_id: int
    coordinates: bool
    crash: bool
    seconds: float


async def bounce_brokers(
    kafka: ApacheKafka, topic: str, transactional_id: str, plan: Plan, show: Callable[[str], object]
) -> list[Bounce]:
    """Kills (SIGKILL) or shuts down a node, starts it again, and waits until the cluster is complete."""
    random = Random(plan.seed)
    bounces: list[Bounce] = []
    while len(bounces) < plan.bounces:
        await asyncio.sleep(random.uniform(1, 3))
        coordinator = await _coordinator(kafka, transactional_id)
        others = [node_id for node_id in kafka.node_ids if node_id != coordinator]
        coordinates = len(bounces) % 2 == 0 or not others
        node_id = coordinator if coordinates else random.choice(others)
        crash = random.random() < 0.5
        show(f"{'killing' if crash else 'restarting'} node {node_id}{', the coordinator' if coordinates else ''}")
        began = time.monotonic()
        await asyncio.to_thread(kafka.kill_node if crash else kafka.stop_node, node_id)
        await asyncio.to_thread(kafka.start_node, node_id)
        await _all_in_sync(kafka, topic)
        bounces.append(Bounce(node_id, coordinates, crash, time.monotonic() - began))
    return bounces


async def _coordinator(kafka: ApacheKafka, transactional_id: str) -> int:
    """The coordinator of the id. Repeats the request until there is one: the first producer makes the id known."""
    deadline = time.monotonic() + _CATCHING_UP
    while True:
        try:
            (row,) = await kafka.tools.transactions("describe", "--transactional-id", transactional_id)
            return int(row["CoordinatorId"])
        except KafkaFailed:
            if time.monotonic() > deadline:
                raise


async def _all_in_sync(kafka: ApacheKafka, topic: str) -> None:
    """Waits until all replicas are in sync, with the admin client: each run of Kafka's own tool takes seconds."""
    deadline = time.monotonic() + _CATCHING_UP
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        while True:
            described = await admin.describe_topic(topic)
            if all(set(p.replicas) == set(p.in_sync_replicas) for p in described.partitions):
                return
            if time.monotonic() > deadline:
                raise KafkaFailed(f"not all replicas are in sync after {_CATCHING_UP:g} s: {described}")
            await asyncio.sleep(_POLL)
