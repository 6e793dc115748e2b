"""The answer to a Produce request, as the producer reads it.

Nearly all answers have one shape: no words of the broker's, no new leader. Where records are sent one at a time,
reading those by the generated functions, which are interpreted, would be a fifth of all that is done for a record. So
they are read here; all others, hostile bytes included, by ``codec``, which knows every shape and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from aioproducer.protocol.big_endian import int16_at, int32_at, int64_at
from aioproducer.protocol.framing import decode_response
from aioproducer.protocol.messages.produce import BatchIndexAndErrorMessage, NodeEndpoint, ProduceResponse

FIRST_FLEXIBLE: Final = 9
"""From this version on counts and lengths are varints, written one larger, and structs end with their tags."""

FIRST_WITH_TOPIC_IDS: Final = 13
"""From this version on topics are named by their ids."""

NEWEST: Final = 14

_LARGEST: Final = 127
"""The largest varint of one byte."""

_LARGEST_COUNT: Final = 0x3FFF
"""The largest varint of two bytes: a request has fewer batches (``MOST_BATCHES``)."""

_HEADER: Final = 5
"""Bytes of a response's header: correlation id, tags."""

_PARTITION: Final = 33
"""Bytes of a partition: index, error code, base offset, log append time, log start offset, and three that are empty:
its record errors, its error message and its tags."""


@final
@mypyc_attr(acyclic=True)
class PartitionAnswer:
    """What became of one partition's batch (``PartitionProduceResponse``)."""

    def __init__(self, topic: bytes, index: i64, error_code: i64, base_offset: i64, log_append_time_ms: i64) -> None:
        self.topic = topic
        """As it stands on the wire: the 16 bytes of its id, or in older versions its name in UTF-8."""
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.record_errors: Sequence[BatchIndexAndErrorMessage] = ()
        self.error_message: str | None = None
        self.leader_id: i64 = -1
        """Who leads the partition now, if the broker tells it (KIP-951)."""
        self.leader_epoch: i64 = -1
        self.batches_to_retain: i64 = 5
        """Of each producer, by the broker (KIP-1269)."""


@final
class ProduceAnswer:
    """The partitions in the order of the answer (``ProduceResponse``)."""

    def __init__(self) -> None:
        self.partitions: list[PartitionAnswer] = []
        self.throttle_time_ms: i64 = 0
        self.node_endpoints: Sequence[NodeEndpoint] = ()


def read_answer(frame: bytes, version: i64) -> ProduceAnswer:
    """The response, of which ``frame`` is header and body; SchemaException if it is none of that version."""
    plain = _read_plain(frame, version)
    if plain is not None:
        return plain
    _, response = decode_response(ProduceResponse, version, frame)
    return answer_of(response, version)


def _read_plain(frame: bytes, version: i64) -> ProduceAnswer | None:
    """None for what ``codec`` has to look at."""
    if version < FIRST_FLEXIBLE or version > NEWEST:
        return None
    end: i64 = len(frame) - 5  # throttle time, tags
    pos: i64 = _HEADER + 1
    if end < pos or frame[_HEADER - 1] != 0:
        return None
    answer = ProduceAnswer()
    topics = _count_at(frame, _HEADER)
    if topics < 1:
        return None
    if topics > _LARGEST:
        pos += 1
    while topics > 1:
        topics -= 1
        start = pos
        if version >= FIRST_WITH_TOPIC_IDS:
            pos += 16
        else:
            length: i64 = frame[pos]
            if length < 1 or length > _LARGEST:
                return None
            start += 1
            pos += length
        if pos >= end:
            return None
        topic = frame[start:pos]
        if version < FIRST_WITH_TOPIC_IDS and not topic.isascii():
            return None
        partitions = _count_at(frame, pos)
        pos += 1 if partitions <= _LARGEST else 2
        if partitions < 1 or pos + (partitions - 1) * _PARTITION >= end:
            return None
        while partitions > 1:
            partitions -= 1
            after = pos + _PARTITION
            if frame[after - 3] != 1 or frame[after - 2] != 0 or frame[after - 1] != 0:
                return None
            answer.partitions.append(
                PartitionAnswer(
                    topic,
                    int32_at(frame, pos),
                    int16_at(frame, pos + 4),
                    int64_at(frame, pos + 6),
                    int64_at(frame, pos + 14),
                )
            )
            pos = after
        if frame[pos] != 0:
            return None
        pos += 1
    if pos != end or frame[end + 4] != 0:
        return None
    answer.throttle_time_ms = int32_at(frame, end)
    return answer


def _count_at(frame: bytes, pos: i64) -> i64:
    """A count there, one larger as on the wire, of one byte up to ``_LARGEST`` or else of two; -1 for any other."""
    count: i64 = frame[pos]
    if count > _LARGEST:
        high: i64 = frame[pos + 1]
        count = count & _LARGEST | high << 7
        if count <= _LARGEST or count > _LARGEST_COUNT:
            return -1
    return count


def answer_of(response: ProduceResponse, version: i64) -> ProduceAnswer:
    """The answer that ``codec`` has read."""
    answer = ProduceAnswer()
    answer.throttle_time_ms = response.throttle_time_ms
    answer.node_endpoints = response.node_endpoints
    for topic in response.responses:
        name = topic.topic_id.bytes if version >= FIRST_WITH_TOPIC_IDS else topic.name.encode()
        for answered in topic.partition_responses:
            one = PartitionAnswer(
                name, answered.index, answered.error_code, answered.base_offset, answered.log_append_time_ms
            )
            one.record_errors = answered.record_errors
            one.error_message = answered.error_message
            one.leader_id = answered.current_leader.leader_id
            one.leader_epoch = answered.current_leader.leader_epoch
            one.batches_to_retain = answered.producer_state_batches_to_retain
            answer.partitions.append(one)
    return answer
