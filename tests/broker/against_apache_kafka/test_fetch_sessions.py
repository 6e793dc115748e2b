"""Fetch sessions of the embedded broker and of Apache Kafka: the same requests get the same answers."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

import pytest

from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.records.record_batch import read_batches
from tests.broker.raw_clients.batches import make_batch

from .kafka_comparison import ComparedBroker, same

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(180)]

PARTITIONS = 4
ROUNDS = 60


class Fetching:
    """One client's session."""

    def __init__(self, broker: ComparedBroker, topic: str, topic_id: UUID, version: int) -> None:
        self.broker = broker
        self.version = version
        self.topic = (topic, ZERO_UUID) if version < 13 else ("", topic_id)
        self.session_id = 0

    async def fetch(self, epoch: int, offsets: dict[int, int], forget: list[int], version: int | None = None) -> Any:
        """The error, whether there is a session, and the partitions in the order of the answer."""
        wanted = [FetchPartition(index, -1, offset, partition_max_bytes=2**20) for index, offset in offsets.items()]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_id=self.session_id,
            session_epoch=epoch,
            topics=[FetchTopic(*self.topic, wanted)] if wanted else [],
            forgotten_topics_data=[ForgottenTopic(*self.topic, forget)] if forget else [],
        )
        response = await self.broker.client.request(request, self.version if version is None else version)
        if epoch <= 0:
            self.session_id = response.session_id
        partitions = [
            (
                one.partition_index,
                ErrorCode(one.error_code).name,
                one.high_watermark,
                one.log_start_offset,
                [record.offset for batch in read_batches(one.records or b"") for record in batch.records()],
            )
            for topic in response.responses
            for one in topic.partitions
        ]
        partitions.sort(key=lambda one: one[1] == "UNKNOWN_TOPIC_OR_PARTITION")  # Kafka's answer has these last
        return ErrorCode(response.error_code).name, response.session_id == self.session_id != 0, partitions


@pytest.mark.parametrize("version", [7, 12, 13, 17])
@pytest.mark.parametrize("seed", range(5))
async def test_any_conversation(pair: tuple[ComparedBroker, ComparedBroker], seed: int, version: int) -> None:
    async def case(broker: ComparedBroker) -> Any:
        random, name = Random(seed), f"sessions-{seed}-{version}"
        topic_id = await broker.create(name, PARTITIONS)
        fetching = Fetching(broker, name, topic_id, version)
        ends = [0] * PARTITIONS
        answers, epoch = [], 0
        for _ in range(ROUNDS):
            for _ in range(random.randrange(2)):
                index = random.randrange(PARTITIONS)
                await broker.produce(name, make_batch(b"x"), index=index)
                ends[index] += 1
            if random.random() < 0.1:
                index = random.randrange(PARTITIONS)
                partition = DeleteRecordsPartition(index, random.randint(0, ends[index]))
                request = DeleteRecordsRequest([DeleteRecordsTopic(name, [partition])], 5000)
                await broker.client.request(request, 2)
            named = random.sample(range(PARTITIONS + 1), random.randrange(3))
            offsets = {index: random.randint(0, ends[index] + 1) if index < PARTITIONS else 0 for index in named}
            forget = random.sample(range(PARTITIONS), random.choice((0, 0, 0, 1)))
            how = random.random()
            if how < 0.05:
                epoch = 0
            elif how < 0.1:
                other = version + (1 if version == 12 else -1 if version == 13 else 0)
                answers.append(await fetching.fetch(max(1, epoch + random.choice((0, 1))), {}, [], other))
                continue
            elif how < 0.12:
                answers.append(await fetching.fetch(-1, offsets, []))
                epoch = 0
                continue
            if epoch == 0:
                offsets = {index: 0 for index in range(PARTITIONS) if index not in forget} | offsets
                forget = []
            answer = await fetching.fetch(epoch, offsets, forget)
            answers.append(answer)
            epoch = epoch + 1 if answer[0] == "NONE" and answer[1] else 0
        return answers

    await same(pair, case)
