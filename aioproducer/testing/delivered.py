"""Checks that every record was delivered once and in order: compares sent records with those an independent reader
found."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

from aioproducer.record_metadata import RecordMetadata
from aioproducer.testing.kafka.kafka_output import ConsumedRecord
from aioproducer.types import ProducerRecord, TimestampType, TopicPartition

Content = tuple[str, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]

_SHOWN = 10


def assert_delivered(
    sent: Sequence[ProducerRecord],
    consumed: Sequence[ConsumedRecord],
    *,
    metadata: Sequence[RecordMetadata] | None = None,
    first_offset: int = 0,
    gaps: bool = False,
) -> None:
    """Raise ``AssertionError`` with the first ``delivery_problems``, if there are any."""
    problems = list(delivery_problems(sent, consumed, metadata=metadata, first_offset=first_offset, gaps=gaps))
    if problems:
        more = f"\n… and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise AssertionError("\n".join(problems[:_SHOWN]) + more)


def delivery_problems(
    sent: Sequence[ProducerRecord],
    consumed: Sequence[ConsumedRecord],
    *,
    metadata: Sequence[RecordMetadata] | None = None,
    first_offset: int = 0,
    gaps: bool = False,
) -> Iterator[str]:
    """Every difference between ``consumed`` and the records that were sent; nothing if they agree.

    ``sent`` is in the order of sending, with keys and values as bytes; ``consumed`` is in any order. The checks are:

    - each record (topic, key, value, headers) is there as many times as it was sent
    - with the partition and the timestamp that its sender chose
    - the records of a key are in one partition
    - each partition is in the order of sending
    - offsets follow each other from ``first_offset``; with ``gaps``, as transactions leave them, none is repeated
    - each sent record is where its ``metadata`` says; an offset of -1, which means unknown, is not checked
    """
    yield from _count_problems(sent, consumed)
    yield from _offset_problems(consumed, first_offset, gaps)
    yield from _order_problems(sent, consumed)
    yield from _key_problems(sent, consumed)
    if metadata is not None:
        yield from _metadata_problems(sent, consumed, metadata)


def _content(record: ProducerRecord | ConsumedRecord) -> Content:
    return record.topic, record.key, record.value, tuple(record.headers or ())


def _where(record: ConsumedRecord) -> str:
    return f"{record.topic}-{record.partition}@{record.offset}"


def _by_partition(consumed: Iterable[ConsumedRecord]) -> dict[TopicPartition, list[ConsumedRecord]]:
    partitions: dict[TopicPartition, list[ConsumedRecord]] = defaultdict(list)
    for record in sorted(consumed, key=lambda record: (record.topic, record.partition, record.offset)):
        partitions[TopicPartition(record.topic, record.partition)].append(record)
    return partitions


def _count_problems(sent: Iterable[ProducerRecord], consumed: Iterable[ConsumedRecord]) -> Iterator[str]:
    expected, found = Counter(map(_content, sent)), Counter(map(_content, consumed))
    for content, count in expected.items():
        if found[content] < count:
            yield f"lost: {content} was sent {count} times and is there {found[content]} times"
        elif found[content] > count:
            yield f"duplicated: {content} was sent {count} times and is there {found[content]} times"
    for content in found.keys() - expected.keys():
        yield f"never sent: {content}"


def _offset_problems(consumed: Iterable[ConsumedRecord], first_offset: int, gaps: bool) -> Iterator[str]:
    for partition, records in _by_partition(consumed).items():
        last = first_offset - 1
        for record in records:
            if record.offset <= last if gaps else record.offset != last + 1:
                yield f"offsets of {partition}: {record.offset} follows {last}"
            last = record.offset


def _order_problems(sent: Sequence[ProducerRecord], consumed: Sequence[ConsumedRecord]) -> Iterator[str]:
    """Give each consumed record the index it was sent at, then check that indexes rise within each partition.

    Equal records in one partition get the indexes in order. Equal records in several partitions cannot be
    distinguished and are left out; only records without a key, or with a chosen partition, can be in several.
    """
    unclaimed: dict[Content, deque[int]] = defaultdict(deque)
    for index, record in enumerate(sent):
        unclaimed[_content(record)].append(index)
    partitions_of: dict[Content, set[int]] = defaultdict(set)
    for found in consumed:
        partitions_of[_content(found)].add(found.partition)
    for records in _by_partition(consumed).values():
        last = -1
        for found in records:
            content = _content(found)
            if len(partitions_of[content]) > 1 or not unclaimed[content]:
                continue
            index = unclaimed[content].popleft()
            record = sent[index]
            if record.partition not in (None, found.partition):
                yield f"partition: {_where(found)} was sent to partition {record.partition}"
            if found.timestamp_type is TimestampType.CREATE_TIME and record.timestamp_ms not in (
                None,
                found.timestamp_ms,
            ):
                yield f"timestamp: {_where(found)} has {found.timestamp_ms} and was sent with {record.timestamp_ms}"
            if index < last:
                yield f"order: {_where(found)} was sent as number {index}, after number {last} in its partition"
            last = max(last, index)


def _key_problems(sent: Iterable[ProducerRecord], consumed: Iterable[ConsumedRecord]) -> Iterator[str]:
    placed = {(record.topic, record.key) for record in sent if record.partition is not None}
    partitions: dict[tuple[str, bytes], set[int]] = defaultdict(set)
    for found in consumed:
        if found.key is not None and (found.topic, found.key) not in placed:
            partitions[found.topic, found.key].add(found.partition)
    for (topic, key), several in partitions.items():
        if len(several) > 1:
            yield f"key {key!r} of {topic} is in partitions {sorted(several)}"


def _metadata_problems(
    sent: Sequence[ProducerRecord], consumed: Iterable[ConsumedRecord], metadata: Sequence[RecordMetadata]
) -> Iterator[str]:
    found_at = {(found.topic, found.partition, found.offset): found for found in consumed}
    for record, reported in zip(sent, metadata, strict=True):
        if reported.offset == -1:
            continue
        found = found_at.get((reported.topic, reported.partition, reported.offset))
        where = f"{reported.topic}-{reported.partition}@{reported.offset}"
        if found is None:
            yield f"metadata: nothing is at {where}, where {_content(record)} should be"
        elif _content(found) != _content(record):
            yield f"metadata: at {where} is {_content(found)} instead of {_content(record)}"
        elif (reported.timestamp_ms, reported.timestamp_type) != (found.timestamp_ms, found.timestamp_type):
            yield (
                f"metadata: {where} has {found.timestamp_type.name} {found.timestamp_ms}, "
                f"not {reported.timestamp_type.name} {reported.timestamp_ms}"
            )
