"""Whatever shape an answer has, what is read is what ``codec`` reads, and what that refuses is refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import SchemaException
from aioproducer.producer.scheduling.drain import MOST_BATCHES
from aioproducer.protocol.codec import decode, decode_prefix
from aioproducer.protocol.framing import encode_response
from aioproducer.protocol.headers import ResponseHeader
from aioproducer.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from aioproducer.protocol.produce_answer import (
    FIRST_FLEXIBLE,
    FIRST_WITH_TOPIC_IDS,
    NEWEST,
    ProduceAnswer,
    _read_plain,
    read_answer,
)
from aioproducer.protocol.schema import NO_TAGGED_FIELDS

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
LOW, HIGH = ProduceRequest.VALID_VERSIONS
VERSIONS = st.integers(LOW, HIGH)
TAGS = st.just(NO_TAGGED_FIELDS) | st.just({7: b"new"})
NAMES = st.text(max_size=8) | st.just("n" * 126) | st.just("n" * 127)


def without_unknown(made: Any, tags: Any) -> Any:
    made.unknown_tagged_fields = tags
    return made


def tagged(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(without_unknown, strategy, TAGS) | strategy


PLAIN_PARTITIONS = st.builds(PartitionProduceResponse, INT32, INT16, INT64, INT64, INT64)
PARTITIONS = PLAIN_PARTITIONS | st.builds(
    PartitionProduceResponse,
    INT32,
    INT16,
    record_errors=st.just([]) | st.just([BatchIndexAndErrorMessage(1, "no")]),
    error_message=st.none() | st.text(max_size=5),
    current_leader=st.just(LeaderIdAndEpoch()) | st.just(LeaderIdAndEpoch(3, 4)),
    producer_state_batches_to_retain=st.just(5) | st.just(9),
)
MANY = st.builds(lambda one, count: [one] * count, PLAIN_PARTITIONS, st.sampled_from((126, 127, 200)))
"""Around the most whose count is one byte."""
TOPICS = tagged(st.builds(TopicProduceResponse, NAMES, st.uuids(), st.lists(tagged(PARTITIONS), max_size=3) | MANY))
EMPTY_TOPICS = st.builds(lambda count: [TopicProduceResponse("t", UUID(int=9))] * count, st.sampled_from((126, 127)))
RESPONSES = tagged(
    st.builds(
        ProduceResponse,
        st.lists(TOPICS, max_size=3) | EMPTY_TOPICS,
        INT32,
        st.just([]) | st.just([NodeEndpoint(1, "h", 9092, None)]),
    )
)


def framed(response: ProduceResponse, version: int) -> bytes:
    """Without its size, and without what the version cannot say."""
    if version < 10:
        response.node_endpoints = []
    for topic in response.responses:
        for partition in topic.partition_responses:
            if version < 10:
                partition.current_leader = LeaderIdAndEpoch()
            if version < 14:
                partition.producer_state_batches_to_retain = 5
            if version < FIRST_FLEXIBLE:
                partition.unknown_tagged_fields = NO_TAGGED_FIELDS
        if version < FIRST_FLEXIBLE:
            topic.unknown_tagged_fields = NO_TAGGED_FIELDS
    if version < FIRST_FLEXIBLE:
        response.unknown_tagged_fields = NO_TAGGED_FIELDS
    return b"".join(encode_response(response, version=version, correlation_id=77))[4:]


def by_codec(version: int, frame: bytes) -> ProduceResponse:
    _, pos = decode_prefix(ResponseHeader, 1 if version >= FIRST_FLEXIBLE else 0, frame)
    return decode(ProduceResponse, version, frame, pos)


def same(answer: ProduceAnswer, response: ProduceResponse, version: int) -> bool:
    expected = [
        (
            topic.topic_id.bytes if version >= FIRST_WITH_TOPIC_IDS else topic.name.encode(),
            one.index,
            one.error_code,
            one.base_offset,
            one.log_append_time_ms,
            list(one.record_errors),
            one.error_message,
            one.current_leader.leader_id,
            one.current_leader.leader_epoch,
            one.producer_state_batches_to_retain,
        )
        for topic in response.responses
        for one in topic.partition_responses
    ]
    read = [
        (
            one.topic,
            one.index,
            one.error_code,
            one.base_offset,
            one.log_append_time_ms,
            list(one.record_errors),
            one.error_message,
            one.leader_id,
            one.leader_epoch,
            one.batches_to_retain,
        )
        for one in answer.partitions
    ]
    return (
        read == expected
        and answer.throttle_time_ms == response.throttle_time_ms
        and list(answer.node_endpoints) == response.node_endpoints
    )


def test_every_flexible_version_is_known() -> None:
    assert (ProduceRequest.FLEXIBLE_VERSIONS.low, HIGH) == (FIRST_FLEXIBLE, NEWEST)


@given(RESPONSES, VERSIONS)
def test_an_answer_is_read_as_codec_reads_it(response: ProduceResponse, version: int) -> None:
    frame = framed(response, version)
    assert same(read_answer(frame, version), by_codec(version, frame), version)


@given(RESPONSES, VERSIONS, st.data())
def test_hostile_bytes_are_read_or_refused_as_by_codec(
    response: ProduceResponse, version: int, data: st.DataObject
) -> None:
    frame = bytearray(framed(response, version))
    place = data.draw(st.integers(0, len(frame) - 1))
    frame[place] = data.draw(st.integers(0, 255))
    hostile = bytes(frame[: data.draw(st.integers(0, len(frame)))] + data.draw(st.binary(max_size=3)))
    try:
        expected = by_codec(version, hostile)
    except SchemaException:
        with pytest.raises(SchemaException):
            read_answer(hostile, version)
    else:
        assert same(read_answer(hostile, version), expected, version)


@pytest.mark.parametrize("version", range(FIRST_FLEXIBLE, NEWEST + 1))
def test_the_common_answer_is_read_without_codec(version: int) -> None:
    topic = TopicProduceResponse("t", UUID(int=9), [PartitionProduceResponse(5, 0, 42, -1, 0)])
    frame = framed(ProduceResponse([topic, topic], 3), version)
    read = _read_plain(frame, version)
    assert read is not None
    assert same(read, by_codec(version, frame), version)
    assert [(one.index, one.base_offset) for one in read.partitions] == [(5, 42), (5, 42)]
    with pytest.raises(SchemaException):
        read_answer(frame[:-1], version)
    with pytest.raises(SchemaException):
        read_answer(frame + b"\0", version)


@pytest.mark.parametrize("count", [126, 127, 2 * MOST_BATCHES])
def test_an_answer_about_many_batches_is_read_without_codec(count: int) -> None:
    partitions = [PartitionProduceResponse(index, 0, 42, -1, 0) for index in range(count)]
    alone = [TopicProduceResponse("", UUID(int=number), partitions[:1]) for number in range(count)]
    for topics in ([TopicProduceResponse("", UUID(int=9), partitions)], alone):
        frame = framed(ProduceResponse(topics, 3), 13)
        read = _read_plain(frame, 13)
        assert read is not None
        assert same(read, by_codec(13, frame), 13)


def test_a_count_that_is_written_too_long_is_left_to_codec() -> None:
    frame = framed(ProduceResponse([TopicProduceResponse("", UUID(int=9), [PartitionProduceResponse(5)])]), 13)
    assert frame[5] == 2
    longer = frame[:5] + b"\x82\x00" + frame[6:]
    assert _read_plain(longer, 13) is None


@pytest.mark.parametrize(
    "response",
    [
        ProduceResponse([TopicProduceResponse("", UUID(int=9), [PartitionProduceResponse(5, 87, error_message="no")])]),
        ProduceResponse(node_endpoints=[NodeEndpoint(1, "h", 9092)]),
        ProduceResponse(
            [
                TopicProduceResponse(
                    "", UUID(int=9), [PartitionProduceResponse(5, current_leader=LeaderIdAndEpoch(1, 2))]
                )
            ]
        ),
    ],
)
def test_news_and_words_are_read_by_codec(response: ProduceResponse) -> None:
    frame = framed(response, 13)
    assert _read_plain(frame, 13) is None
    assert same(read_answer(frame, 13), response, 13)
