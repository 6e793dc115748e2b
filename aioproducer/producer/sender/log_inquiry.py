"""Asks a partition's leader for the producer's last sequence in its log (DescribeProducers, KIP-664).

After some refusals a batch may or may not be in the log. The producer's last sequence in the log decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from random import Random

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import KafkaError, NetworkException, error_for
from aioproducer.net.client import KafkaClient
from aioproducer.net.supervisor import Supervisor
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.accumulator.producer_batch import ProducerBatch
from aioproducer.producer.scheduling.readiness import NO_LEADER
from aioproducer.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from aioproducer.timing.backoff import ExponentialBackoff

log = logging.getLogger(__name__)


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


class LogInquiry:
    """One question for each batch, repeated until there is an answer or the batch has ended.

    ``on_answer(queue, batch, in_log)`` gets what :func:`is_in_log` returns; None if the leader is too old (before Kafka
    2.8) or the principal lacks permission (Read on the topic).
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        supervisor: Supervisor,
        random: Random,
        *,
        on_answer: Callable[[PartitionQueue, ProducerBatch, bool | None], object],
    ) -> None:
        self._client = client
        self._supervisor = supervisor
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self._on_answer = on_answer

    def begin(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self._supervisor.launch(self._ask(queue, batch), "aioproducer DescribeProducers")

    async def _ask(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        failures = 0
        while not batch.result.done():
            try:
                self._on_answer(queue, batch, is_in_log(batch, await self._producers(queue)))
                return
            except KafkaError as error:
                log.debug("%r: DescribeProducers failed: %s", batch, error)
                if not error.retriable:
                    self._on_answer(queue, batch, None)
                    return
                self._client.request_update()
            failures += 1
            await asyncio.sleep(self._backoff.wait(failures))

    async def _producers(self, queue: PartitionQueue) -> list[ProducerState]:
        if queue.leader == NO_LEADER:
            raise NetworkException(f"{queue.topic}-{queue.partition} has no leader")
        request = DescribeProducersRequest([TopicRequest(queue.topic, [queue.partition])])
        response = await self._client.request(request, DescribeProducersResponse, node_id=queue.leader)
        for topic in response.topics:
            for partition in topic.partitions:
                if (topic.name, partition.partition_index) == (queue.topic, queue.partition):
                    if partition.error_code != 0:
                        raise error_for(partition.error_code, partition.error_message or "")
                    return partition.active_producers
        raise NetworkException(f"the answer leaves out {queue.topic}-{queue.partition}")
