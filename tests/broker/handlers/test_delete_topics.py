from __future__ import annotations

from uuid import uuid4

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import UnknownTopicOrPartitionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from aioproducer.protocol.primitives import ZERO_UUID

from . import RawClient


@pytest.mark.parametrize("version", range(1, 7))
async def test_by_name_in_every_version(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    topic_id = cluster.create_topic("t").id
    request = (
        DeleteTopicsRequest(topic_names=["t", "x"])
        if version < 6
        else DeleteTopicsRequest([DeleteTopicState("t"), DeleteTopicState("x")])
    )
    deleted, unknown = (await client.request(request, version)).responses
    assert (deleted.name, deleted.error_code) == ("t", ErrorCode.NONE)
    assert deleted.topic_id == (topic_id if version >= 6 else ZERO_UUID)
    assert (unknown.name, unknown.error_code) == ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(UnknownTopicOrPartitionException):
        cluster.log("t")


async def test_by_id(cluster: EmbeddedCluster, client: RawClient) -> None:
    known, unknown = cluster.create_topic("t").id, uuid4()
    request = DeleteTopicsRequest([DeleteTopicState(None, known), DeleteTopicState(None, unknown)])
    deleted, missing = (await client.request(request, 6)).responses
    assert (deleted.name, deleted.topic_id, deleted.error_code) == ("t", known, ErrorCode.NONE)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID)


async def test_a_topic_named_by_neither_or_both_of_name_and_id_is_refused(
    cluster: EmbeddedCluster, client: RawClient
) -> None:
    topic_id = cluster.create_topic("t").id
    request = DeleteTopicsRequest([DeleteTopicState(None), DeleteTopicState("t", topic_id)])
    answers = (await client.request(request, 6)).responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
    assert cluster.topic("t").id == topic_id


@pytest.mark.parametrize("cluster", [{"configs": {"delete.topic.enable": False}}], indirect=True)
async def test_may_be_forbidden(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    (answer,) = (await client.request(DeleteTopicsRequest([DeleteTopicState("t")]), 6)).responses
    assert answer.error_code == ErrorCode.TOPIC_DELETION_DISABLED
