"""Asks the embedded broker and Apache Kafka the same: their answers must be the same.

A case is a conversation with a broker: it returns what must not differ. Topics are named after the case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import zip_longest
from typing import Any
from uuid import UUID

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.find_coordinator import FindCoordinatorRequest
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import Request
from aioproducer.records.record_batch import read_batches
from tests.broker.raw_clients.raw_client import RawClient

GROUP, TRANSACTION = 0, 1
NOT_YET = {
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR",
    "CONCURRENT_TRANSACTIONS",
}
"""Kafka reads what a coordinator knows from a topic, and writes markers, in its own time; ours does both at once."""


class ComparedBroker:
    """Short calls for requests to a broker."""

    def __init__(self, client: RawClient) -> None:
        self.client = client

    async def create(self, name: str, partitions: int = 1, **configs: str) -> UUID:
        """Creates a topic and waits until the broker leads it."""
        wanted = [CreatableTopicConfig(config.replace("_", "."), value) for config, value in configs.items()]
        topic = CreatableTopic(name, partitions, 1, configs=wanted)
        response = await self.client.request(CreateTopicsRequest([topic]), 7)
        assert response.topics[0].error_code == ErrorCode.NONE
        topic_id: UUID = response.topics[0].topic_id
        # Kafka's broker hears of the topic a little later, and knows that it leads before it has made the log.
        for index in range(partitions):
            while (await self.list_offset(name, -1, index=index))[0] != ErrorCode.NONE.name:
                pass
        return topic_id

    async def produce(
        self,
        topic: str,
        batch: bytes,
        version: int = 12,
        acks: int = -1,
        index: int = 0,
        transactional_id: str | None = None,
    ) -> Any:
        data = TopicProduceData(topic, partition_data=[PartitionProduceData(index, batch)])
        request = ProduceRequest(transactional_id, acks=acks, timeout_ms=5000, topic_data=[data])
        response = await self.client.request(request, version)
        answer = response.responses[0].partition_responses[0]
        return ErrorCode(answer.error_code).name, answer.base_offset, answer.log_append_time_ms

    async def list_offset(
        self, topic: str, timestamp: int, version: int = 9, epoch: int = -1, index: int = 0, isolation: int = 0
    ) -> Any:
        partition = ListOffsetsPartition(index, epoch, timestamp)
        request = ListOffsetsRequest(-1, isolation, [ListOffsetsTopic(topic, [partition])])
        response = await self.client.request(request, version)
        answer = response.topics[0].partitions[0]
        return ErrorCode(answer.error_code).name, answer.timestamp, answer.offset, answer.leader_epoch

    async def end_of_epoch(self, topic: str, leader_epoch: int, version: int = 4, current: int = -1) -> Any:
        wanted = OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(0, current, leader_epoch)])
        response = await self.client.request(OffsetForLeaderEpochRequest(-1, [wanted]), version)
        answer = response.topics[0].partitions[0]
        return ErrorCode(answer.error_code).name, answer.leader_epoch, answer.end_offset

    async def fetch(self, topic: str, offset: int, version: int = 12, index: int = 0, **more: Any) -> Any:
        epoch = more.pop("epoch", -1)
        size = more.pop("size", 2**20)
        fetched = more.pop("fetched", -1)
        partition = FetchPartition(index, epoch, offset, fetched, partition_max_bytes=size)
        topic_id = more.pop("topic_id", ZERO_UUID)
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic, topic_id, [partition])], **more)
        response = await self.client.request(request, version)
        if not response.responses:
            return ErrorCode(response.error_code).name
        (answer,) = response.responses[0].partitions
        return (
            ErrorCode(answer.error_code).name,
            answer.high_watermark,
            answer.last_stable_offset,
            answer.log_start_offset,
            answer.aborted_transactions or [],
            answer.preferred_read_replica,
            (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset),
            [record for batch in read_batches(answer.records, allow_partial=True) for record in batch.records()],
        )

    async def settled(self, request: Request, version: int, code: Callable[[Any], int]) -> Any:
        """The answer of a coordinator, repeated until the coordinator is ready."""
        while ErrorCode(code(answer := await self.client.request(request, version))).name in NOT_YET:  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.01)
        return answer

    async def find_coordinator(self, key: str, kind: int) -> None:
        """Kafka creates the topic of a coordinator with its first request."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        await self.settled(request, 6, lambda answer: int(answer.coordinators[0].error_code))


Case = Callable[[ComparedBroker], Awaitable[Any]]


async def same(pair: tuple[ComparedBroker, ComparedBroker], case: Case) -> list[Any]:
    """What both brokers say; fails where they differ."""
    embedded, real = pair
    async with asyncio.timeout(60):  # some cases repeat requests until Kafka's broker has the metadata
        ours, theirs = await case(embedded), await case(real)
    assert ours
    assert [(one, other) for one, other in zip_longest(ours, theirs) if one != other] == []
    answers: list[Any] = ours
    return answers
