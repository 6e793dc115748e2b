"""Writers refuse invalid values and never copy records."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.errors import SchemaException, UnsupportedVersionException
from aioproducer.protocol.codec import encode
from aioproducer.protocol.messages.api_versions import ApiVersionsRequest
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.messages.produce import (
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from aioproducer.protocol.schema import Message

WRONG: Any = object()


@pytest.mark.parametrize(
    ("message", "version", "field", "reason"),
    [
        (MetadataRequest(topics=None), 0, "topics", "null where it is not allowed"),
        (MetadataRequest([MetadataRequestTopic(name=None)]), 9, r"topics\[\].name", "null where it is not allowed"),
        (ProduceResponse(throttle_time_ms=2**31), 3, "throttle_time_ms", ""),
        (ProduceResponse(throttle_time_ms=WRONG), 3, "throttle_time_ms", ""),
        (ProduceResponse(responses=WRONG), 3, "responses", ""),
        (ProduceResponse(responses=[WRONG]), 3, r"responses\[\].name", ""),
        (ProduceRequest(transactional_id=WRONG), 3, "transactional_id", ""),
        (ProduceRequest(transactional_id="\ud800"), 9, "transactional_id", "surrogates"),
        (ProduceRequest(transactional_id="x" * 32768), 3, "transactional_id", "a string of 32768 bytes"),
        (ProduceRequest(transactional_id="é" * 16384), 9, "transactional_id", "a string of 32768 bytes"),
        (ProduceRequest(unknown_tagged_fields={-1: b""}), 9, "tagged fields", "-1 does not fit"),
        (ProduceResponse(unknown_tagged_fields={0: b""}), 10, "tagged fields", "tagged field 0 is declared"),
        (ProduceResponse(node_endpoints=[NodeEndpoint(port=WRONG)]), 10, r"node_endpoints\[\].port", ""),
    ],
)
def test_values_that_do_not_fit(message: Message, version: int, field: str, reason: str) -> None:
    expected = f"cannot write {type(message).__name__} v{version}: {field}: .*{reason}"
    with pytest.raises(SchemaException, match=expected):
        encode(message, version)


def test_long_strings_are_written() -> None:
    assert b"".join(encode(ApiVersionsRequest("x" * 127, "y" * 32767), 3)) == (
        b"\x80\x01" + b"x" * 127 + b"\x80\x80\x02" + b"y" * 32767 + b"\x00"
    )


@pytest.mark.parametrize("version", [-1, 2, 15])
def test_versions_that_there_are_not(version: int) -> None:
    with pytest.raises(UnsupportedVersionException, match=f"ProduceRequest has versions 3-14, not {version}"):
        encode(ProduceRequest(), version)


def test_kip_1269_needs_version_14() -> None:
    partition = PartitionProduceResponse(producer_state_batches_to_retain=20)
    message = ProduceResponse([TopicProduceResponse(partition_responses=[partition])])
    assert b"\x01\x01\x04\x00\x00\x00\x14" in b"".join(encode(message, 14))
    with pytest.raises(UnsupportedVersionException, match=r"v13 has no .*producer_state_batches_to_retain"):
        encode(message, 13)


def test_records_are_parts_of_their_own() -> None:
    first, second, third = b"first batch", bytearray(b"second"), memoryview(b"third")
    partitions = [
        PartitionProduceData(0, first),
        PartitionProduceData(1, None),
        PartitionProduceData(2, [second, third]),
    ]
    parts = encode(ProduceRequest(topic_data=[TopicProduceData("t", partition_data=partitions)]), 9)
    assert parts == [
        b"\x00\x00\x00\x00\x00\x00\x00\x02\x02t\x04\x00\x00\x00\x00\x0c",
        first,
        b"\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x02\x0c",
        second,
        third,
        b"\x00\x00\x00",
    ]
    assert parts[1] is first
    assert isinstance(parts[3], memoryview)
    assert parts[3].obj is second
