"""OffsetCommit and OffsetFetch without transactions (with them: ``test_transactions.py``)."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from aioproducer.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

from . import RawClient


@pytest.fixture(autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("t", partitions=2)


async def commit(
    cluster: EmbeddedCluster, client: RawClient, offset: int, version: int = 10, **group: Any
) -> ErrorCode:
    partition = OffsetCommitRequestPartition(1, offset, 3 if version >= 6 else -1, "note")
    topics = [OffsetCommitRequestTopic("t", cluster.topic("t").id, [partition])]
    response = await client.request(OffsetCommitRequest("g", topics=topics, **group), version)
    return ErrorCode(response.topics[0].partitions[0].error_code)


async def fetch(cluster: EmbeddedCluster, client: RawClient, version: int, *, all_of: bool = False) -> Any:
    """The answers for partitions 0 and 1, or for all that have an offset."""
    if version < 8:
        topics = None if all_of else [OffsetFetchRequestTopic("t", [0, 1])]
        response = await client.request(OffsetFetchRequest("g", topics), version)
        answer = response
    else:
        named = None if all_of else [OffsetFetchRequestTopics("t", cluster.topic("t").id, [0, 1])]
        response = await client.request(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=named)]), version
        )
        (answer,) = response.groups
    assert answer.error_code == ErrorCode.NONE
    return [partition for topic in answer.topics for partition in topic.partitions]


async def test_a_resource_named_twice_is_answered_once(cluster: EmbeddedCluster, client: RawClient) -> None:
    """Thousands of times the offsets of one group would take all memory."""
    await commit(cluster, client, 7)
    named = OffsetFetchRequestTopics("t", cluster.topic("t").id, [1, 1])
    twice = [OffsetFetchRequestGroup("g", topics=topics) for topics in ([named, named], None, [named, named])]
    response = await client.request(OffsetFetchRequest(groups=twice), 9)
    (group,) = response.groups
    (topic,) = group.topics
    assert [(one.partition_index, one.committed_offset) for one in topic.partitions] == [(1, 7)]


@pytest.mark.parametrize("version", range(2, 11))
async def test_every_version_commits(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    assert await commit(cluster, client, version, version) is ErrorCode.NONE
    nothing, found = await fetch(cluster, client, 10)
    assert (nothing.committed_offset, nothing.metadata, nothing.error_code) == (-1, "", ErrorCode.NONE)
    assert (found.committed_offset, found.metadata, found.error_code) == (version, "note", ErrorCode.NONE)
    assert found.committed_leader_epoch == (3 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(1, 11))
async def test_every_version_fetches(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    await commit(cluster, client, 7)
    nothing, found = await fetch(cluster, client, version)
    assert (nothing.partition_index, nothing.committed_offset) == (0, -1)
    assert (found.partition_index, found.committed_offset) == (1, 7)
    if version >= 2:
        (found,) = await fetch(cluster, client, version, all_of=True)
        assert (found.partition_index, found.committed_offset) == (1, 7)


async def test_a_member_of_an_unknown_group_cannot_commit(cluster: EmbeddedCluster, client: RawClient) -> None:
    code = await commit(cluster, client, 1, generation_id_or_member_epoch=1, member_id="m")
    assert code is ErrorCode.ILLEGAL_GENERATION
    assert await fetch(cluster, client, 10, all_of=True) == []
    await commit(cluster, client, 1)
    code = await commit(cluster, client, 2, generation_id_or_member_epoch=1, member_id="m")
    assert code is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("version", "code"), [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (10, ErrorCode.UNKNOWN_TOPIC_ID)]
)
async def test_an_unknown_topic(client: RawClient, version: int, code: ErrorCode) -> None:
    topics = [OffsetCommitRequestTopic("other", partitions=[OffsetCommitRequestPartition(0, 1)])]
    response = await client.request(OffsetCommitRequest("g", topics=topics), version)
    assert response.topics[0].partitions[0].error_code == code
