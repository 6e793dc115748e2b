"""From drained batches to the bytes of a ProduceRequest, and from its answer back to the batches.

The request is written here in all its versions, directly from the batches and not from a ``ProduceRequest``: for
records sent one at a time, making the message objects would cost more than writing the bytes. The bytes are those that
``codec`` would write.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from aioproducer.producer.scheduling.drain import Drained
from aioproducer.protocol.primitives import write_uvarint
from aioproducer.protocol.produce_answer import FIRST_FLEXIBLE, FIRST_WITH_TOPIC_IDS, PartitionAnswer

_ONE_BYTE: Final = [bytes([value]) for value in range(128)]
"""The varints of one byte …"""

_ONE_BYTE_MORE: Final = [bytes([value | 0x80]) for value in range(128)]
"""… and the first bytes of longer ones."""

_NO_TAGS: Final = _ONE_BYTE[0]


def request_start(transactional_id: str | None, acks: int, timeout_ms: int, version: i64) -> bytes:
    """The head before the topics, the same for all requests of a producer in this version."""
    if version >= FIRST_FLEXIBLE:
        name = b"\0" if transactional_id is None else _compact(transactional_id.encode())
    elif transactional_id is None:
        name = b"\xff\xff"
    else:
        name = _with_int16(transactional_id.encode())
    return name + acks.to_bytes(2, "big", signed=True) + timeout_ms.to_bytes(4, "big")


def write_request(
    start: bytes, drained: list[Drained], names: dict[str, bytes], version: i64
) -> list[bytes | memoryview]:
    """One request with all the batches, each topic once; in parts, so that headers and bodies of batches are never
    copied.

    ``names`` are the topics in wire format: the 16 bytes of their ids, or before version 13 their names.
    """
    flexible = version >= FIRST_FLEXIBLE
    topics = _by_topic(drained, names)
    parts: list[bytes | memoryview] = []
    tags = _NO_TAGS if flexible else b""
    start += _count(len(topics), flexible)
    for topic, batches in topics.items():
        name = names[topic]
        if version < FIRST_WITH_TOPIC_IDS:
            name = _compact(name) if flexible else _with_int16(name)
        start = start + name + _count(len(batches), flexible)
        for one in batches:
            batch = one.batch
            size: i64 = len(batch.header) + len(batch.body)
            parts.append(start + _int32(one.queue.partition) + _count(size, flexible))
            parts.append(batch.header)
            parts.append(batch.body)
            start = tags
        start += tags
    parts.append(start + tags)
    return parts


def _by_topic(drained: list[Drained], names: dict[str, bytes]) -> dict[str, list[Drained]]:
    if len(names) == 1:
        return {drained[0].queue.topic: drained}
    topics: dict[str, list[Drained]] = {}
    for one in drained:
        topics.setdefault(one.queue.topic, []).append(one)
    return topics


def _int32(value: i64) -> bytes:
    number: int = value
    return number.to_bytes(4, "big")


def _count(value: i64, flexible: bool) -> bytes:
    """A count, or a number of bytes."""
    return _uvarint(value + 1) if flexible else _int32(value)


def _uvarint(value: i64) -> bytes:
    if value < 128:
        return _ONE_BYTE[value]
    if value < 16384:
        return _ONE_BYTE_MORE[value & 0x7F] + _ONE_BYTE[value >> 7]
    out = bytearray()
    write_uvarint(out, value)
    return bytes(out)


def _compact(name: bytes) -> bytes:
    return _uvarint(len(name) + 1) + name


def _with_int16(name: bytes) -> bytes:
    return len(name).to_bytes(2, "big") + name


def match_answers(
    drained: list[Drained], names: dict[str, bytes], answers: list[PartitionAnswer]
) -> list[PartitionAnswer | None]:
    """The answer to each drained batch, None if missing; if a partition is answered twice, the first counts."""
    if len(answers) == 1 and len(drained) == 1:
        only, queue = answers[0], drained[0].queue
        return [only if only.index == queue.partition and only.topic == names[queue.topic] else None]
    by_topic: dict[bytes, dict[int, PartitionAnswer]] = {}
    for answer in answers:
        partitions = by_topic.get(answer.topic)
        if partitions is None:
            partitions = by_topic[answer.topic] = {}
        if answer.index not in partitions:
            partitions[answer.index] = answer
    found: list[PartitionAnswer | None] = []
    for one in drained:
        partitions = by_topic.get(names[one.queue.topic])
        found.append(None if partitions is None else partitions.get(one.queue.partition))
    return found
