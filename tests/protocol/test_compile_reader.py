"""Readers refuse invalid data and say where it is."""

from __future__ import annotations

from uuid import UUID

import pytest

from aioproducer.errors import SchemaException
from aioproducer.protocol.codec import decode, decode_prefix, encode
from aioproducer.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from aioproducer.protocol.messages.produce import ProduceRequest, ProduceResponse
from aioproducer.protocol.schema import Message


@pytest.mark.parametrize(
    ("message", "version", "data", "refusal"),
    [
        # lengths that are not possible
        (MetadataRequest, 1, "ffffffff", None),
        (MetadataRequest, 1, "fffffffe", "topics at byte 4 of 4: negative length -2"),
        (MetadataRequest, 0, "ffffffff", "topics at byte 4 of 4: null where it is not allowed"),
        (MetadataRequest, 0, "00000001 ffff", r"topics\[\].name at byte 6 of 6: null where it is not allowed"),
        (MetadataRequest, 0, "00000001 fffe", r"topics\[\].name at byte 6 of 6: negative length -2"),
        (MetadataRequest, 0, "00000001 8000", r"topics\[\].name at byte 6 of 6: negative length -32768"),
        (MetadataRequest, 0, "00000001 0002 61", r"topics\[\].name at byte 6 of 7: 2 times 1 bytes .* 1 bytes left"),
        (MetadataRequest, 0, "7fffffff 0000", "topics at byte 4 of 6: 2147483647 times 2 bytes or more announced, 2 "),
        (MetadataRequest, 9, "02 00 00 00 00 00 00", r"topics\[\].name at byte 2 of 7: null where it is not allowed"),
        (MetadataRequest, 9, "ffffffffff 00 00 00", "topics at byte 1 of 8: unsigned varint overflows 31 bits"),
        (ProduceRequest, 3, "fffe", "transactional_id at byte 2 of 2: negative length -2"),
        (ProduceRequest, 3, "0001 ff", "transactional_id at byte 2 of 3: not UTF-8"),
        (ProduceRequest, 9, "02 c0", "transactional_id at byte 1 of 2: not UTF-8"),
        (ProduceRequest, 9, "04 eda080", "transactional_id at byte 1 of 4: not UTF-8"),
        # data that ends: neighbours of fixed size are read at once, and still distinguished
        (ProduceRequest, 3, "ffff 00", "acks at byte 2 of 3: the data ends here"),
        (ProduceRequest, 3, "ffff 0000 000000", "timeout_ms at byte 4 of 7: the data ends here"),
        (ProduceRequest, 3, "ffff 0000 00000000", "topic_data at byte 8 of 8: the data ends here"),
        (ProduceRequest, 9, "", "transactional_id at byte 0 of 0: the data ends here"),
        (ProduceRequest, 9, "80", "transactional_id at byte 1 of 1: the data ends here"),
        (DeleteTopicsRequest, 6, "02 00 0000", r"topics at byte 1 of 4: 1 times 18 bytes or more announced, 3 bytes"),
        # more than the message
        (MetadataRequest, 0, "00000000 00", "MetadataRequest v0 ends at byte 4 of 5"),
        # tagged fields
        (ProduceResponse, 9, "01 00000000 00", None),
        (ProduceResponse, 9, "01 00000000 02 4d00 4e00", None),
        (ProduceResponse, 9, "01 00000000 02 4d00 4d00", "tagged fields at byte 9 of 10: tagged field 77 after .* 77"),
        (ProduceResponse, 9, "01 00000000 02 4d00 4c00", "tagged fields at byte 9 of 10: tagged field 76 after .* 77"),
        (ProduceResponse, 9, "01 00000000 03 4d00 4e00", "tagged fields at byte 6 of 10: 3 times 2 bytes or more"),
        (ProduceResponse, 9, "01 00000000 8080808001", "tagged fields at byte 10 of 10: 268435456 times 2 bytes"),
        (ProduceResponse, 9, "01 00000000 01 4d02 00", "tagged fields at byte 8 of 9: 2 times 1 bytes"),
        (ProduceResponse, 9, "01 00000000 01 0001 01", "field 0 does not belong to this version"),
        (ProduceResponse, 10, "01 00000000 01 0001 01", None),
        (ProduceResponse, 10, "01 00000000 01 0002 01 00", "node_endpoints at byte 9 of 10: .* ends at byte 9, .* 10"),
        (ProduceResponse, 10, "01 00000000 01 0000 01", "node_endpoints at byte 9 of 9: .* ends at byte 9, .* 8"),
        (FetchRequest, 12, "00000000" * 6 + "00 01 01 01 01 0001 00", None),
        (FetchRequest, 12, "00000000" * 6 + "00 01 01 01 01 0002 0361", "cluster_id at byte 32 of 33: 2 times 1 bytes"),
    ],
)
def test_refusals(message: type[Message], version: int, data: str, refusal: str | None) -> None:
    raw = bytes.fromhex(data)
    for given in (raw, memoryview(raw)):
        if refusal is None:
            decode(message, version, given)
            continue
        with pytest.raises(SchemaException, match=refusal) as caught:
            decode(message, version, given)
        assert str(caught.value).startswith(f"{message.__name__} v{version}")
        # The error is passed on and kept; the data must not be kept with it.
        assert caught.value.__context__ is None


def test_fields_of_other_versions_have_their_defaults() -> None:
    response = decode(DeleteTopicsResponse, 1, bytes.fromhex("00000005 00000001 0001 61 0003"))
    (topic,) = response.responses
    assert (topic.name, topic.error_code, topic.error_message, topic.topic_id) == ("a", 3, None, UUID(int=0))


def test_any_byte_but_0_is_true() -> None:
    assert decode(MetadataRequest, 4, bytes.fromhex("00000000 02")).allow_auto_topic_creation is True


def test_records_are_views_of_the_data() -> None:
    data = bytes.fromhex("ffff 0001 00000000 00000001 0001 61 00000001 00000007 00000003 aabbcc")
    (topic,) = decode(ProduceRequest, 3, data).topic_data
    records = topic.partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is data
    assert bytes(records) == b"\xaa\xbb\xcc"


def test_unknown_tagged_fields_are_copies() -> None:
    """A view would keep a whole frame alive for a few bytes."""
    response = decode(ProduceResponse, 9, memoryview(bytes.fromhex("01 00000000 01 4d02 aabb")))
    assert response.unknown_tagged_fields == {77: b"\xaa\xbb"}
    assert type(response.unknown_tagged_fields[77]) is bytes


def test_the_elements_of_all_arrays_together_may_be_limited() -> None:
    partitions = [FetchPartition(index) for index in range(4)]
    data = b"".join(encode(FetchRequest(topics=[FetchTopic("a", partitions=partitions)] * 2), 11))
    message, end = decode_prefix(FetchRequest, 11, data, max_elements=10)
    assert (len(message.topics), end) == (2, len(data))
    with pytest.raises(SchemaException, match="more elements than are allowed"):
        decode_prefix(FetchRequest, 11, data, max_elements=9)
    numbers = b"".join(encode(OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [1, 2, 3])]), 7))
    assert decode_prefix(OffsetFetchRequest, 7, numbers, max_elements=4)[1] == len(numbers)
    with pytest.raises(SchemaException, match="more elements than are allowed"):
        decode_prefix(OffsetFetchRequest, 7, numbers, max_elements=3)
