"""Whatever is read and written here is what ``codec`` reads and writes, byte for byte; all else is left to it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import SchemaException
from aioproducer.protocol.codec import decode, decode_prefix, encode
from aioproducer.protocol.framing import decode_response, encode_request, encode_response
from aioproducer.protocol.headers import ResponseHeader
from aioproducer.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from aioproducer.protocol.plain_produce import NEWEST, OLDEST, read_plain, write_plain
from aioproducer.protocol.schema import NO_TAGGED_FIELDS

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
FLEXIBLE = st.integers(OLDEST, NEWEST)
VERSIONS = st.integers(ProduceRequest.VALID_VERSIONS.low, ProduceRequest.VALID_VERSIONS.high)
TAGS = st.just(NO_TAGGED_FIELDS) | st.just({7: b"new"})
NAMES = st.text(max_size=8) | st.just("n" * 126) | st.just("n" * 127)
BUFFERS = st.binary(max_size=200)
RECORDS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    BUFFERS,
    BUFFERS.map(bytearray),
    st.tuples(BUFFERS, BUFFERS),
    st.lists(BUFFERS.map(lambda one: memoryview(one))),
)


def without_unknown(made: Any, tags: Any) -> Any:
    made.unknown_tagged_fields = tags
    return made


def tagged(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(without_unknown, strategy, TAGS) | strategy


TOPIC_DATA = st.builds(
    TopicProduceData,
    NAMES,
    st.uuids(),
    st.lists(tagged(st.builds(PartitionProduceData, INT32, RECORDS)), max_size=3),
)
REQUESTS = tagged(
    st.builds(ProduceRequest, st.none() | st.none() | NAMES, INT16, INT32, st.lists(tagged(TOPIC_DATA), max_size=3))
)
PLAIN_PARTITIONS = st.builds(PartitionProduceResponse, INT32, INT16, INT64, INT64, INT64)
PARTITIONS = PLAIN_PARTITIONS | st.builds(
    PartitionProduceResponse,
    INT32,
    INT16,
    record_errors=st.just([]) | st.just([BatchIndexAndErrorMessage(1, "no")]),
    error_message=st.none() | st.text(max_size=5),
    current_leader=st.just(LeaderIdAndEpoch()) | st.just(LeaderIdAndEpoch(3, 4)),
)
RESPONSES = tagged(
    st.builds(
        ProduceResponse,
        st.lists(
            tagged(st.builds(TopicProduceResponse, NAMES, st.uuids(), st.lists(tagged(PARTITIONS), max_size=3))),
            max_size=3,
        ),
        INT32,
    )
)


def by_codec(version: int, frame: bytes) -> tuple[int, ProduceResponse]:
    header, pos = decode_prefix(ResponseHeader, 1, frame)
    return header.correlation_id, decode(ProduceResponse, version, frame, pos)


def framed(response: ProduceResponse, version: int) -> bytes:
    """Without its size."""
    if version < 10:
        for topic in response.responses:
            for partition in topic.partition_responses:
                partition.current_leader = LeaderIdAndEpoch()
    return b"".join(encode_response(response, version=version, correlation_id=77))[4:]


def test_every_flexible_version_is_known() -> None:
    assert (ProduceRequest.FLEXIBLE_VERSIONS.low, ProduceRequest.VALID_VERSIONS.high) == (OLDEST, NEWEST)


@given(REQUESTS, VERSIONS)
def test_what_is_written_is_what_codec_writes(request: ProduceRequest, version: int) -> None:
    written = write_plain(request, version)
    assert written is None or written == encode(request, version)


@given(RESPONSES, FLEXIBLE)
def test_what_is_read_is_what_codec_reads(response: ProduceResponse, version: int) -> None:
    frame = framed(response, version)
    read = read_plain(frame, version)
    assert read is None or read == by_codec(version, frame)


@given(RESPONSES, FLEXIBLE, st.data())
def test_hostile_bytes_are_left_to_codec(response: ProduceResponse, version: int, data: st.DataObject) -> None:
    frame = bytearray(framed(response, version))
    place = data.draw(st.integers(0, len(frame) - 1))
    frame[place] = data.draw(st.integers(0, 255))
    hostile = bytes(frame[: data.draw(st.integers(0, len(frame)))] + data.draw(st.binary(max_size=3)))
    read = read_plain(hostile, version)
    assert read is None or read == by_codec(version, hostile)


@pytest.mark.parametrize("size", [1, 0x7F, 0x80, 0x3FFF, 0x4000, 100_000])
@pytest.mark.parametrize("version", range(OLDEST, NEWEST + 1))
def test_the_common_request_is_plain(version: int, size: int) -> None:
    header, body = b"", b"b" * (size - 1)
    data = [PartitionProduceData(5, (header, body)), PartitionProduceData(6, (header, body))]
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData("t", UUID(int=9), data)])
    written = write_plain(request, version)
    assert written == encode(request, version)
    assert written is not None
    assert [part is header or part is body for part in written] == [False, True, True, False, True, True, False]
    assert b"".join(written) in b"".join(encode_request(request, version=version, correlation_id=1, client_id="c"))


@pytest.mark.parametrize("version", range(OLDEST, NEWEST + 1))
def test_the_common_response_is_plain(version: int) -> None:
    topic = TopicProduceResponse("t", UUID(int=9), [PartitionProduceResponse(5, 0, 42, -1, 0)])
    frame = framed(ProduceResponse([topic, topic], 3), version)
    read = read_plain(frame, version)
    assert read == by_codec(version, frame) == decode_response(ProduceResponse, version, frame)
    assert read is not None
    assert read[0] == 77
    with pytest.raises(SchemaException):
        decode_response(ProduceResponse, version, frame[:-1])
    with pytest.raises(SchemaException):
        decode_response(ProduceResponse, version, frame + b"\0")


def test_answers_share_nothing() -> None:
    one = PartitionProduceResponse(5, 0, 42)
    frame = framed(ProduceResponse([TopicProduceResponse("", UUID(int=9), [one, one])]), 13)
    read = read_plain(frame, 13)
    assert read is not None
    first, second = read[1].responses[0].partition_responses
    first.current_leader.leader_id = 1
    first.record_errors.append(BatchIndexAndErrorMessage(0, "no"))
    assert (second.current_leader, second.record_errors) == (LeaderIdAndEpoch(), [])


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
    assert read_plain(frame, 13) is None
    assert decode_response(ProduceResponse, 13, frame) == by_codec(13, frame)


@pytest.mark.parametrize(
    "request_",
    [
        ProduceRequest(None, 2**15, 1),
        ProduceRequest(None, 1, None),  # type: ignore[arg-type]
        ProduceRequest(None, 1, 1, None),  # type: ignore[arg-type]
        ProduceRequest(7, 1, 1),  # type: ignore[arg-type]
        ProduceRequest(None, 1, 1, [TopicProduceData("t", None)]),  # type: ignore[arg-type]
        ProduceRequest(None, 1, 1, [TopicProduceData("t", partition_data=[PartitionProduceData(2**31, b"")])]),
        ProduceRequest(None, 1, 1, [TopicProduceData("t", partition_data=[PartitionProduceData(1, "text")])]),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused_by_codec_with_its_place(request_: ProduceRequest) -> None:
    assert write_plain(request_, 13) is None
    with pytest.raises(SchemaException, match="cannot write ProduceRequest v13"):
        encode_request(request_, version=13, correlation_id=1, client_id=None)
