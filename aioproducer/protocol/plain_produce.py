"""Produce as nearly all of it is: requests without a transaction, and answers without words of the broker's.

Where records are sent one at a time, to write each request and read its answer by the generated functions, which are
interpreted, takes a third of all that is done for it. What is here is compiled and knows the common shape only. For
anything else, hostile bytes included, it gives None: then ``codec``, which knows all shapes, does it, or says what is
wrong.
"""

from __future__ import annotations

import struct
from typing import Final

from aioproducer.errors import SchemaException
from aioproducer.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from aioproducer.protocol.primitives import ZERO_UUID, record_buffers, to_uuid, write_uvarint
from aioproducer.protocol.schema import NO_TAGGED_FIELDS

OLDEST: Final = 9
"""The first flexible version: counts and lengths are varints, written one larger, and structs end with their tags."""

_WITH_IDS: Final = 13
"""From this version on topics are named by id."""

NEWEST: Final = 14

_LARGEST: Final = 126
"""The largest count or length that takes one byte."""

_REQUEST = struct.Struct(">BhiB")  # no transactional id, acks, time-out, topics
_REQUEST_PARTITIONS = struct.Struct(">16sB")  # topic id, partitions
_INDEX = struct.Struct(">i")
_RESPONSE = struct.Struct(">iBB")  # correlation id, tags, topics
_RESPONSE_PARTITION = struct.Struct(">ihqqqBBB")  # … record errors, error message, tags
_RESPONSE_END = struct.Struct(">iB")  # throttle time, tags

_NONE: Final = 1
"""The count of an empty array."""

_new = object.__new__


def _uvarint(value: int) -> bytes:
    if value < 0x80:
        return value.to_bytes(1, "big")
    if value < 0x4000:
        return (value >> 7 << 8 | value & 0x7F | 0x80).to_bytes(2, "little")
    out = bytearray()
    write_uvarint(out, value)
    return bytes(out)


def write_plain(request: ProduceRequest, version: int) -> list[bytes | memoryview] | None:
    """As ``codec.encode`` writes it, in the same parts; None for what it has to look at."""
    if not OLDEST <= version <= NEWEST:
        return None
    parts: list[bytes | memoryview] = []
    try:
        topics = request.topic_data
        if (
            len(topics) > _LARGEST
            or request.transactional_id is not None
            or request.unknown_tagged_fields is not NO_TAGGED_FIELDS
        ):
            return None
        start: bytes = _REQUEST.pack(0, request.acks, request.timeout_ms, len(topics) + 1)
        for topic in topics:
            partitions = topic.partition_data
            if len(partitions) > _LARGEST or topic.unknown_tagged_fields is not NO_TAGGED_FIELDS:
                return None
            if version >= _WITH_IDS:
                start += _REQUEST_PARTITIONS.pack(topic.topic_id.int.to_bytes(16, "big"), len(partitions) + 1)
            else:
                name = topic.name.encode()
                if len(name) > _LARGEST:
                    return None
                start += _uvarint(len(name) + 1) + name + _uvarint(len(partitions) + 1)
            for partition in partitions:
                records = partition.records
                if records is None or partition.unknown_tagged_fields is not NO_TAGGED_FIELDS:
                    return None
                buffers, size = record_buffers(records)
                parts.append(start + _INDEX.pack(partition.index) + _uvarint(size + 1))
                parts.extend(buffers)
                start = b"\0"  # the partition has no tags
            start += b"\0"
        parts.append(start + b"\0")
    except (SchemaException, struct.error, TypeError, ValueError, AttributeError, OverflowError):
        return None  # a value that does not fit: codec says which
    return parts


def read_plain(frame: bytes, version: int) -> tuple[int, ProduceResponse] | None:
    """The correlation id and the response, as ``codec.decode`` reads them; None for what it has to look at."""
    if not OLDEST <= version <= NEWEST:
        return None
    response: ProduceResponse = _new(ProduceResponse)
    try:
        correlation_id, tags, topics = _RESPONSE.unpack_from(frame)
        pos = 6
        if tags != 0 or not 0 < topics <= _LARGEST:
            return None
        responses = response.responses = []
        for _ in range(topics - 1):
            topic: TopicProduceResponse = _new(TopicProduceResponse)
            if version >= _WITH_IDS:
                topic.name = ""
                topic.topic_id = to_uuid(frame[pos : pos + 16])
                pos += 16
            else:
                end = pos + frame[pos]
                if not pos < end <= pos + _LARGEST:
                    return None
                topic.name = frame[pos + 1 : end].decode()
                topic.topic_id = ZERO_UUID
                pos = end
            partitions = frame[pos]
            pos += 1
            if not 0 < partitions <= _LARGEST:
                return None
            answers = topic.partition_responses = []
            for _ in range(partitions - 1):
                answer: PartitionProduceResponse = _new(PartitionProduceResponse)
                (
                    answer.index,
                    answer.error_code,
                    answer.base_offset,
                    answer.log_append_time_ms,
                    answer.log_start_offset,
                    record_errors,
                    error_message,
                    tags,
                ) = _RESPONSE_PARTITION.unpack_from(frame, pos)
                pos += 33
                if record_errors != _NONE or error_message != 0 or tags != 0:
                    return None
                answer.record_errors = []
                answer.error_message = None
                leader: LeaderIdAndEpoch = _new(LeaderIdAndEpoch)
                leader.leader_id = leader.leader_epoch = -1
                leader.unknown_tagged_fields = NO_TAGGED_FIELDS
                answer.current_leader = leader
                answer.producer_state_batches_to_retain = 5
                answer.unknown_tagged_fields = NO_TAGGED_FIELDS
                answers.append(answer)
            if frame[pos] != 0:
                return None
            pos += 1
            topic.unknown_tagged_fields = NO_TAGGED_FIELDS
            responses.append(topic)
        response.throttle_time_ms, tags = _RESPONSE_END.unpack_from(frame, pos)
    except (struct.error, IndexError, ValueError):
        return None
    if tags != 0 or pos + 5 != len(frame):
        return None
    response.node_endpoints = []
    response.unknown_tagged_fields = NO_TAGGED_FIELDS
    return correlation_id, response
