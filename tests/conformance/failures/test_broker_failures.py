"""Nodes crash, leave and hang while the producer sends: every record is still there once and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aioproducer import KafkaProducer, ProducerRecord
from aioproducer.testing.delivered import assert_delivered
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from tests.conformance.topics import create_topic, describe_topic
from tests.support.polling import until

PARTITIONS = 6
# Records before and after a failure: enough of each that the failure falls among them.
ENOUGH = 2000
POLL = 0.1
"""Seconds: requests without a pause would keep the nodes busy."""


def crash(kafka: ApacheKafka, node_id: int) -> None:
    kafka.kill_node(node_id)
    kafka.start_node(node_id)


def restart(kafka: ApacheKafka, node_id: int) -> None:
    kafka.stop_node(node_id)
    kafka.start_node(node_id)


def hang(kafka: ApacheKafka, node_id: int) -> None:
    """Long enough to be fenced: others lead meanwhile, and what the node still has to say is out of date."""
    kafka.pause_node(node_id)
    others = {1, 2, 3} - {node_id}
    until(
        lambda: all(node_id not in kafka.known_brokers(other) for other in others),
        "the others still know the node",
        every=POLL,
    )
    kafka.resume_node(node_id)
    until(
        lambda: all(node_id in kafka.known_brokers(other) for other in others),
        "the others do not know the node again",
        every=POLL,
    )


@pytest.mark.parametrize("failure", [crash, pytest.param(restart, marks=pytest.mark.long), hang])
async def test_a_leader_fails(kafka_cluster: ApacheKafka, failure: Callable[[ApacheKafka, int], None]) -> None:
    topic = failure.__name__
    tools = kafka_cluster.tools
    await create_topic(
        kafka_cluster, topic, partitions=PARTITIONS, replication_factor=3, configs={"min.insync.replicas": "2"}
    )
    leader = (await describe_topic(kafka_cluster, topic)).partitions[0].leader

    sent: list[ProducerRecord] = []
    deliveries = []
    async with KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers, batch_size=2000) as producer:

        async def send(count: int) -> None:
            for _ in range(count):
                sent.append(ProducerRecord(topic, b"%d" % len(sent), b"key %d" % (len(sent) % 50)))
                deliveries.append(await producer.enqueue(sent[-1]))
                await asyncio.sleep(0)

        await send(ENOUGH)
        failing = asyncio.create_task(asyncio.to_thread(failure, kafka_cluster, leader))
        while not failing.done():
            await send(10)
        await failing
        await send(ENOUGH)
        await producer.flush()

    metadata = [delivery.result() for delivery in deliveries]
    assert sum((await tools.get_offsets(topic)).values()) == len(sent)
    consumed = await tools.console_consumer(topic, max_messages=len(sent), timeout=120)
    assert_delivered(sent, consumed, metadata=metadata)
