from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from aioproducer.records.record_batch import RecordBatch

from . import NOW_MS, RawClient, make_batch


@pytest.fixture(autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    """Epoch 0 has offsets 0 and 1, epoch 2 the offset 2, epoch 3 nothing."""
    cluster.create_topic("t")
    partition = cluster.topic("t").partitions[0]
    for epoch, values in ((0, (b"a", b"b")), (2, (b"c",))):
        partition.log.append(RecordBatch(make_batch(*values)), leader_epoch=epoch, now_ms=NOW_MS)
    for _ in range(3):
        partition.elect(partition.leader)


async def epoch_end(
    client: RawClient, epoch: int, version: int = 4, *, current: int = -1, topic: str = "t", index: int = 0
) -> Any:
    wanted = OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(index, current, epoch)])
    (topics,) = (await client.request(OffsetForLeaderEpochRequest(-1, [wanted]), version)).topics
    (answer,) = topics.partitions
    assert (topics.topic, answer.partition) == (topic, index)
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_the_end_of_an_epoch_is_found_in_every_version(client: RawClient, version: int) -> None:
    found = [await epoch_end(client, epoch, version) for epoch in range(-1, 5)]
    assert found == [(0, -1, -1), (0, 0, 2), (0, 0, 2), (0, 2, 3), (0, 3, 3), (0, -1, -1)]


async def test_wrong_requests(client: RawClient, cluster: EmbeddedCluster) -> None:
    assert await epoch_end(client, 0, current=3) == (ErrorCode.NONE, 0, 2)
    assert await epoch_end(client, 0, current=2) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert await epoch_end(client, 0, current=4) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert await epoch_end(client, 0, topic="u") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert await epoch_end(client, 0, index=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    cluster.topic("t").partitions[0].leader = 7
    assert await epoch_end(client, 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)


async def test_many_at_once(client: RawClient) -> None:
    wanted = OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, -1, 0)] * 1000)
    (topic,) = (await client.request(OffsetForLeaderEpochRequest(-1, [wanted]), 4)).topics
    assert {(one.leader_epoch, one.end_offset) for one in topic.partitions} == {(0, 2)}
    assert len(topic.partitions) == 1000
