"""Brokers that crash or are restarted, one at a time, every other time the one that coordinates the transactions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from aioproducer.admin import KafkaAdmin
from aioproducer.testing.apache_kafka import ApacheKafka
from aioproducer.testing.kafka_libs import KafkaFailed
from aioproducer.testing.transactions.plan import Plan

_CATCHING_UP = 120.0
"""Seconds that a node may need to be a replica in sync again."""
_POLL = 0.2


@dataclass(frozen=True)
class Bounce:
    """``seconds`` from its end to all replicas in sync again."""

    node_id: int
    coordinates: bool
    crash: bool
    seconds: float


async def bounce_brokers(
    kafka: ApacheKafka, topic: str, transactional_id: str, plan: Plan, told: Callable[[str], object]
) -> list[Bounce]:
    """Crashes (SIGKILL) and restarts (controlled), and a pause after each: the cluster is whole again by then."""
    random = Random(plan.seed)
    bounces: list[Bounce] = []
    while len(bounces) < plan.bounces:
        await asyncio.sleep(random.uniform(1, 3))
        coordinator = await _coordinator(kafka, transactional_id)
        others = [node_id for node_id in kafka.node_ids if node_id != coordinator]
        coordinates = len(bounces) % 2 == 0 or not others
        node_id = coordinator if coordinates else random.choice(others)
        crash = random.random() < 0.5
        told(f"{'killing' if crash else 'restarting'} node {node_id}{', the coordinator' if coordinates else ''}")
        began = time.monotonic()
        await asyncio.to_thread(kafka.kill_node if crash else kafka.stop_node, node_id)
        await asyncio.to_thread(kafka.start_node, node_id)
        await _all_in_sync(kafka, topic)
        bounces.append(Bounce(node_id, coordinates, crash, time.monotonic() - began))
    return bounces


async def _coordinator(kafka: ApacheKafka, transactional_id: str) -> int:
    """Asked until there is one: nobody knows the id before the first producer has come."""
    deadline = time.monotonic() + _CATCHING_UP
    while True:
        try:
            (row,) = await kafka.tools.transactions("describe", "--transactional-id", transactional_id)
            return int(row["CoordinatorId"])
        except KafkaFailed:
            if time.monotonic() > deadline:
                raise


async def _all_in_sync(kafka: ApacheKafka, topic: str) -> None:
    """Asked without Kafka's own tool, of which each question would take seconds."""
    deadline = time.monotonic() + _CATCHING_UP
    async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        while True:
            described = await admin.describe_topic(topic)
            if all(set(p.replicas) == set(p.in_sync_replicas) for p in described.partitions):
                return
            if time.monotonic() > deadline:
                raise KafkaFailed(f"not all replicas are in sync after {_CATCHING_UP:g} s: {described}")
            await asyncio.sleep(_POLL)
