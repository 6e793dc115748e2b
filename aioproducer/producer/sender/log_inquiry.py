"""Asks a partition's leader for the producer's last sequence in its log (DescribeProducers, KIP-664).

After some refusals a batch may or may not be in the log. The producer's last sequence in the log decides. But a leader
answers for its own log. Followers may not have copied its end yet, and if one of them is elected, that end is lost. So
a batch in the log counts as delivered once the high watermark has reached what was the log's end after the leader's
answer. OffsetForLeaderEpoch returns the log's end and ListOffsets the high watermark, both only in the leader epoch in
which the leader answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import NamedTuple

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import (
    KafkaError,
    LeaderNotAvailableException,
    NetworkException,
    UnknownTopicIdException,
    error_for,
)
from aioproducer.net.client import KafkaClient
from aioproducer.net.metadata.cluster import NO_TOPIC_ID
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.record_accumulator import TopicQueues
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.scheduling.readiness import NO_LEADER
from aioproducer.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from aioproducer.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from aioproducer.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.backoff import ExponentialBackoff

log = logging.getLogger(__name__)

_LATEST = -1
"""The timestamp for which ListOffsets returns the high watermark."""


def is_in_log(batch: ProducerBatch, states: Iterable[ProducerState]) -> bool | None:
    """Whether the log with these producers has the batch; None if that is unknown.

    A log has the sequences of an epoch without a gap, and so all up to the last one. A log that does not know the
    producer has none of them: nothing is forgotten while batches are under way, so it is a new log.
    """
    for state in states:
        if state.producer_id != batch.producer_id:
            continue
        if state.producer_epoch < batch.producer_epoch:
            return False
        if state.producer_epoch > batch.producer_epoch or state.last_sequence < 0:
            return None
        beyond_first = (state.last_sequence - batch.base_sequence) & 0x7FFFFFFF  # sequences have 31 bits
        if beyond_first >= 1 << 30:
            return False
        return True if beyond_first >= batch.count - 1 else None
    return False


class _Leader(NamedTuple):
    """Who is asked: a partition's leader, in one of its epochs."""

    topic: str
    partition: int
    node: int
    epoch: int


class LogInquiry:
    """One question for each batch, repeated until there is an answer or the batch has ended.

    ``on_answer(queue, batch, in_log)`` gets what :func:`is_in_log` returns of the known log: True only if that is
    committed, None if the leader is too old (before Kafka 2.8) or the principal lacks permission (Read on the topic).
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        supervisor: Supervisor,
        random: Random,
        topics: Mapping[str, TopicQueues],
        *,
        on_answer: Callable[[PartitionQueue, ProducerBatch, bool | None], object],
    ) -> None:
        self._client = client
        self._supervisor = supervisor
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self._topics = topics
        self._on_answer = on_answer

    def begin(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self._supervisor.launch(self._ask(queue, batch), "aioproducer DescribeProducers")

    async def _ask(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        failures = 0
        while not batch.result.done():
            try:
                leader = await self._leader_of(queue)
                in_log = is_in_log(batch, await self._producers(leader))
                if queue.sequences is not None and queue.sequences.by_name:
                    await self._check_topic_id(leader)
                if in_log:
                    await self._committed(leader, batch)
                self._on_answer(queue, batch, in_log)
                return
            except KafkaError as error:
                log.debug("%r: the inquiry failed: %s", batch, error)
                if not error.retriable:
                    self._on_answer(queue, batch, None)
                    return
                self._client.request_update()
            failures += 1
            await asyncio.sleep(self._backoff.wait(failures))

    async def _leader_of(self, queue: PartitionQueue) -> _Leader:
        """Metadata of old brokers has no leader epoch; the leader itself knows it."""
        if queue.leader == NO_LEADER:
            raise NetworkException(f"{queue.topic}-{queue.partition} has no leader")
        leader = _Leader(queue.topic, int(queue.partition), int(queue.leader), int(queue.leader_epoch))
        return leader if leader.epoch >= 0 else leader._replace(epoch=(await self._end_of(leader)).leader_epoch)

    async def _producers(self, leader: _Leader) -> list[ProducerState]:
        request = DescribeProducersRequest([TopicRequest(leader.topic, [leader.partition])])
        response = await self._client.request(request, DescribeProducersResponse, node_id=leader.node)
        for topic in response.topics:
            for partition in topic.partitions:
                if (topic.name, partition.partition_index) == leader[:2]:
                    if partition.error_code != 0:
                        raise error_for(partition.error_code, partition.error_message or "")
                    return partition.active_producers
        raise _left_out(leader)

    async def _check_topic_id(self, leader: _Leader) -> None:
        """UnknownTopicIdException if the leader may have answered for another log than the one known: requests that
        name topics by name reach any. A broker knows the id of a topic before it has its log."""
        request = MetadataRequest([MetadataRequestTopic(name=leader.topic)], allow_auto_topic_creation=False)
        response = await self._client.request(request, MetadataResponse, node_id=leader.node)
        for topic in response.topics:
            if topic.name == leader.topic and topic.error_code == 0:
                known = self._topics.get(leader.topic)
                ids = topic.topic_id, NO_TOPIC_ID if known is None else known.topic_id
                if known is None or (ids[0] != ids[1] and NO_TOPIC_ID not in ids):
                    raise UnknownTopicIdException(f"{leader.topic} has been created anew")
                return
        raise _left_out(leader)

    async def _committed(self, leader: _Leader, batch: ProducerBatch) -> None:
        """Returns when the present end of the leader's log is committed, or the batch has ended."""
        end = await self._log_end(leader)
        waits = 0
        while not batch.result.done() and (await self._end_of(leader)).offset < end:
            waits += 1
            await asyncio.sleep(self._backoff.wait(waits))

    async def _log_end(self, leader: _Leader) -> int:
        wanted = OffsetForLeaderPartition(leader.partition, leader.epoch, leader.epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(leader.topic, [wanted])])
        response = await self._client.request(request, OffsetForLeaderEpochResponse, node_id=leader.node)
        for topic in response.topics:
            for partition in topic.partitions:
                if (topic.topic, partition.partition) == leader[:2]:
                    if partition.error_code != 0:
                        raise error_for(partition.error_code, "")
                    if partition.end_offset < 0:
                        raise LeaderNotAvailableException(f"node {leader.node} does not know its leader epoch yet")
                    return partition.end_offset
        raise _left_out(leader)

    async def _end_of(self, leader: _Leader) -> ListOffsetsPartitionResponse:
        """Its high watermark, and its leader epoch."""
        wanted = ListOffsetsPartition(leader.partition, leader.epoch, _LATEST)
        request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(leader.topic, [wanted])])
        response = await self._client.request(request, ListOffsetsResponse, node_id=leader.node)
        for topic in response.topics:
            for partition in topic.partitions:
                if (topic.name, partition.partition_index) == leader[:2]:
                    if partition.error_code != 0:
                        raise error_for(partition.error_code, "")
                    return partition
        raise _left_out(leader)


def _left_out(leader: _Leader) -> NetworkException:
    return NetworkException(f"the answer of node {leader.node} leaves out {leader.topic}-{leader.partition}")
