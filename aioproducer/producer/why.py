"""Why a record is not delivered yet, in words for the messages of time-outs."""

from __future__ import annotations

from aioproducer.error_code import ErrorCode
from aioproducer.net.client import KafkaClient
from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.producer_batch import ProducerBatch
from aioproducer.producer.readiness import NO_LEADER, why_waiting


def why_no_metadata(client: KafkaClient, topic: str) -> str:
    """What stands between us and the topic's metadata."""
    unreachable = client.unreachable()
    if unreachable:
        return unreachable
    failure = client.metadata.failures.get(topic)
    if failure is None:
        error = client.metadata_error
        return f"metadata cannot be had: {error}" if error is not None else "the brokers have not answered yet"
    code, times = failure
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return (
            f"the brokers answered {times} times that it does not exist (UNKNOWN_TOPIC_OR_PARTITION); "
            "create it, or let them create topics by themselves (auto.create.topics.enable)"
        )
    return f"the brokers answered {code.name} {times} times"


def why_not_delivered(
    client: KafkaClient, queue: PartitionQueue, batch: ProducerBatch, now: float, *, keep_order: bool, id_missing: bool
) -> str:
    """What keeps this batch from being delivered now."""
    if batch.in_flight:
        return "its last request has not been answered"
    if queue.leader == NO_LEADER:
        return "the partition has no leader"
    link = client.link(queue.leader)
    if link is None:
        return f"its leader, node {queue.leader}, is not among the brokers of the cluster"
    if not link.ready():
        return f"its leader {link} is not connected: {link.last_error or 'no attempt has ended yet'}"
    if id_missing:
        return "no producer id was given out yet"
    waiting = why_waiting(queue, now, keep_order=keep_order)
    return waiting.value if waiting is not None else link.why_busy(now)
