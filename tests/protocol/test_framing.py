from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import SchemaException, UnsupportedVersionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataResponse
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def unframed(parts: list[bytes | memoryview]) -> bytes:
    """The frame, after its size was checked."""
    data = b"".join(parts)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return data[4:]


REQUESTS = [(key, v) for key, api in APIS.items() for v in range(api.request.MIN_VERSION, api.request.MAX_VERSION + 1)]
RESPONSES = [
    (key, v) for key, api in APIS.items() for v in range(api.response.MIN_VERSION, api.response.MAX_VERSION + 1)
]


@pytest.mark.parametrize(("key", "version"), REQUESTS)
@pytest.mark.parametrize("client_id", [None, "", "aioproducer-1", "é" * 200])
def test_requests(client_id: str | None, key: ApiKey, version: int) -> None:
    request = APIS[key].request()
    frame = unframed(encode_request(request, version=version, correlation_id=2**31 - 1, client_id=client_id))
    header = RequestHeader(key, version, 2**31 - 1, client_id)
    assert decode_request(frame) == (header, request)
    assert decode_request(memoryview(frame)) == (header, request)


@pytest.mark.parametrize(("key", "version"), RESPONSES)
def test_responses(key: ApiKey, version: int) -> None:
    response = APIS[key].response()
    frame = unframed(encode_response(response, version=version, correlation_id=-1))
    assert decode_response(APIS[key].response, version, frame) == (-1, response)


def test_the_response_header_is_flexible_except_for_api_versions() -> None:
    assert unframed(encode_response(MetadataResponse(), version=8, correlation_id=1))[4:8] == bytes(4)
    assert unframed(encode_response(MetadataResponse(), version=9, correlation_id=1))[4:9] == bytes(5)
    flexible = unframed(encode_response(ApiVersionsResponse(error_code=7), version=3, correlation_id=1))
    assert flexible[:6] == bytes.fromhex("00000001 0007")


def test_records_are_not_copied_into_the_frame() -> None:
    batch = b"batch"
    topic = TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])
    parts = encode_request(ProduceRequest(topic_data=[topic]), version=9, correlation_id=1, client_id=None)
    assert [part is batch for part in parts] == [False, True, False]
    assert unframed(parts).count(batch) == 1


def test_a_request_newer_than_us_can_be_answered() -> None:
    frame = bytes.fromhex("0012 0063 00000005 0001 61 00") + b"what version 99 may have"
    header, body = decode_request_header(frame)
    assert header == RequestHeader(ApiKey.API_VERSIONS, 99, 5, "a")
    assert frame[body:] == b"what version 99 may have"
    with pytest.raises(UnsupportedVersionException, match="ApiVersionsRequest has versions 0-4, not 99"):
        decode_request(frame)


@pytest.mark.parametrize("version", range(5))
def test_a_broker_older_than_us_answers_in_version_0(version: int) -> None:
    answer = ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, [ApiVersion(18, 0, 2)])
    frame = unframed(encode_response(answer, version=0, correlation_id=5))
    assert decode_response(ApiVersionsResponse, version, frame) == (5, answer)


@pytest.mark.parametrize("version", range(5))
def test_bytes_that_are_no_api_versions_response_are_refused_in_every_version(version: int) -> None:
    with pytest.raises(SchemaException, match="ApiVersionsResponse v0"):
        decode_response(ApiVersionsResponse, version, b"HTTP/1.1 400 Bad Request")


def test_only_api_versions_is_tried_in_version_0() -> None:
    frame = unframed(encode_response(MetadataResponse(), version=0, correlation_id=5))
    with pytest.raises(SchemaException, match="MetadataResponse v9"):
        decode_response(MetadataResponse, 9, frame)


def test_a_request_of_an_unknown_api() -> None:
    frame = bytes.fromhex("7fff 0001 00000005 0001 61 aabb")
    assert decode_request_header(frame) == (RequestHeader(0x7FFF, 1, 5, "a"), 11)
    with pytest.raises(UnsupportedVersionException, match="API 32767 is not known here"):
        decode_request(frame)


def test_negative_versions() -> None:
    frame = bytes.fromhex("0003 ffff 00000005 ffff 00000000")
    assert decode_request_header(frame) == (RequestHeader(ApiKey.METADATA, -1, 5, None), 10)
    with pytest.raises(UnsupportedVersionException, match="MetadataRequest has versions 0-13, not -1"):
        decode_request(frame)


def test_cut_frames() -> None:
    request = unframed(encode_request(MetadataRequest(None), version=12, correlation_id=1, client_id="c"))
    response = unframed(encode_response(MetadataResponse(), version=12, correlation_id=1))
    for size in range(len(request)):
        with pytest.raises(SchemaException):
            decode_request(request[:size])
    for size in range(len(response)):
        with pytest.raises(SchemaException):
            decode_response(MetadataResponse, 12, response[:size])


@given(st.one_of(st.binary(max_size=100), st.binary(max_size=60).map(lambda body: b"\0\x12\0\3\0\0\0\1\0\1c\0" + body)))
def test_noise(frame: bytes) -> None:
    try:
        decode_request(frame)
    except (SchemaException, UnsupportedVersionException):
        pass
    for api in APIS.values():
        try:
            decode_response(api.response, api.response.MAX_VERSION, frame)
        except SchemaException:
            pass


def test_golden_api_versions_request() -> None:
    parts = encode_request(ApiVersionsRequest("aioproducer", "1.0"), version=3, correlation_id=7, client_id="me")
    assert b"".join(parts) == bytes.fromhex(
        "0000001e"  # 30 bytes follow
        "0012 0003"  # ApiVersions, version 3
        "00000007"
        "0002 6d65"  # the client id: two-byte length, though the header is flexible
        "00"  # no tagged fields in the header
        "0c 61696f70726f6475636572"
        "04 312e30"
        "00"
    )


def test_golden_metadata_request() -> None:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    parts = encode_request(request, version=12, correlation_id=1, client_id=None)
    assert b"".join(parts) == bytes.fromhex("0000000f 0003 000c 00000001 ffff 00 00 00 00 00")


def test_golden_produce_request() -> None:
    topic = TopicProduceData("orders", partition_data=[PartitionProduceData(3, b"\xab" * 200)])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    parts = encode_request(request, version=9, correlation_id=2, client_id="me")
    assert (
        b"".join(parts)
        == bytes.fromhex(
            "000000ee"  # 238: 13 of header, 1 + 2 + 4 + 1 + 7 + 1 + 4 + 2 before the records, 200 of them, 3 after
            "0000 0009 00000002 0002 6d65 00"
            "00"  # no transactional id
            "ffff 00007530"
            "02 07 6f7264657273"
            "02 00000003"
            "c901" + "ab" * 200 + "00"  # 200 as varint: 201
            "00"
            "00"
        )
    )
