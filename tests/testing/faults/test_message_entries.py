"""Topics and partitions in messages are found for every API of the broker, and for none by its name."""

from __future__ import annotations

from uuid import UUID

import pytest

from aioproducer.broker.kafka_apis import APIS as BROKER_APIS
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from aioproducer.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aioproducer.protocol.schema import Struct
from aioproducer.testing.faults.message_entries import (
    entries,
    has_error,
    mirrors,
    names_partitions,
    names_topics,
    with_error,
)

ID = UUID(int=7)


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (FetchRequest(topics=[FetchTopic("", ID, [FetchPartition(0), FetchPartition(2)])]), [None, 0, 2]),
        (AddPartitionsToTxnRequest(v3_and_below_topics=[AddPartitionsToTxnTopic("seven", [4, 5])]), [None, 4, 5]),
        (
            OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("seven", ID, [1])])]
            ),
            [None, 1],
        ),
        (CreateTopicsRequest([CreatableTopic("seven", 3, 1, [], [CreatableTopicConfig("retention.ms", "1")])]), [None]),
    ],
    ids=["by id", "numbers alone", "in groups", "configs are no topics"],
)
def test_entries_are_found_whatever_their_fields_are_called(message: Struct, found: list[int | None]) -> None:
    seen = list(entries(message, {ID: "seven"}.get))
    assert [entry.topic for entry in seen] == ["seven"] * len(found)
    assert [entry.partition for entry in seen] == found


def apis(*keys: ApiKey) -> set[ApiKey]:
    return set(keys)


def test_apis_that_name_topics_and_partitions_are_known() -> None:
    known = [ApiKey(key) for key in BROKER_APIS]
    assert {key for key in known if names_partitions(APIS[key].request)} >= apis(
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.DELETE_RECORDS,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DESCRIBE_PRODUCERS,
        ApiKey.OFFSET_DELETE,
    )
    assert {key for key in known if names_topics(APIS[key].request)} >= apis(
        ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS
    )
    named = {key for key in known if names_topics(APIS[key].request) or names_partitions(APIS[key].request)}
    assert named.isdisjoint(
        apis(ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.DESCRIBE_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
    )


def test_responses_have_errors() -> None:
    assert {ApiKey(key) for key in BROKER_APIS if not has_error(APIS[ApiKey(key)].response)} == set()


def test_a_refusal_of_everything_that_is_named() -> None:
    request = CreateTopicsRequest([CreatableTopic("a", 3, 1), CreatableTopic("b", 1, 1)])
    assert mirrors(CreateTopicsRequest, CreateTopicsResponse)
    refused = with_error(request, CreateTopicsResponse, 41, 7)
    assert [(topic.name, topic.error_code) for topic in refused.topics] == [("a", 41), ("b", 41)]
    assert not mirrors(APIS[ApiKey.DELETE_TOPICS].request, APIS[ApiKey.DELETE_TOPICS].response)
