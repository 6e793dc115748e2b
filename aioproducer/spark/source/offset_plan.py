"""Plans the offsets of a batch, and divides them among tasks. Rules only: nothing here needs a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aioproducer.types import TopicPartition

Offsets = Mapping[TopicPartition, int]
"""For each partition, the offset of the next record to read."""

OffsetsByTopic = dict[str, dict[str, int]]
"""Offsets in the form that Spark keeps in a checkpoint; Spark's Kafka source writes the same JSON."""


class OffsetRange(NamedTuple):
    """What one task reads: the offsets from ``begin`` to before ``end``."""

    topic: str
    partition: int
    begin: int
    end: int

    @property
    def size(self) -> int:
        """Offsets; compaction, and markers of transactions, may leave fewer records."""
        return self.end - self.begin

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


def to_json(offsets: Offsets) -> OffsetsByTopic:
    """As Spark keeps them."""
    by_topic: OffsetsByTopic = {}
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return by_topic


def from_json(by_topic: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """As they are used here."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, of_topic in by_topic.items()
        for partition, offset in of_topic.items()
    }


def split(ranges: Iterable[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """The non-empty ranges, cut into pieces of nearly equal size: none larger than ``max_records``, and at least
    ``min_partitions`` of them if there are that many offsets. The pieces of a partition follow each other."""
    wanted = [each for each in ranges if each.size > 0]
    pieces = [-(-each.size // max_records) if max_records is not None else 1 for each in wanted]
    if min_partitions is not None:
        # Each has its share of them, rounded up.
        total = sum(each.size for each in wanted)
        if sum(pieces) < min_partitions:
            pieces = [
                max(count, min(each.size, -(-each.size * min_partitions // total)))
                for each, count in zip(wanted, pieces, strict=True)
            ]
    return [
        OffsetRange(
            each.topic,
            each.partition,
            each.begin + each.size * piece // count,
            each.begin + each.size * (piece + 1) // count,
        )
        for each, count in zip(wanted, pieces, strict=True)
        for piece in range(count)
    ]


def limited(begins: Offsets, ends: Offsets, limit: int) -> dict[TopicPartition, int]:
    """The ends of a batch with at most ``limit`` offsets. Each partition's share is proportional to what is there, but
    at least one offset where anything is there, as long as the limit allows."""
    sizes = {partition: ends[partition] - begins[partition] for partition in sorted(ends)}
    waiting = {partition: size for partition, size in sizes.items() if size > 0}
    if sum(waiting.values()) <= limit:
        return dict(ends)
    taken = dict.fromkeys(sizes, 0)
    # Partitions with the most go first, so that with a small limit it is not always the same ones that are left out.
    for partition in sorted(waiting, key=lambda partition: -waiting[partition])[:limit]:
        taken[partition] = 1
    spare = limit - sum(taken.values())
    rest = sum(size - taken[partition] for partition, size in waiting.items())
    passed = given = 0
    for partition, size in waiting.items():
        passed += size - taken[partition]
        share = spare * passed // rest - given
        given += share
        taken[partition] += share
    return {
        partition: begins[partition] + taken[partition] if sizes[partition] > 0 else ends[partition]
        for partition in sizes
    }


def waiting_offsets(begins: Offsets, ends: Offsets) -> int:
    """How many offsets there are to be read; ``begins`` has all partitions."""
    return sum(max(end - begins[partition], 0) for partition, end in ends.items())


def ranges(begins: Offsets, ends: Offsets) -> list[OffsetRange]:
    """The ranges between; partitions without an end are left out."""
    return [OffsetRange(*partition, begins[partition], ends[partition]) for partition in sorted(ends)]


def impossible(
    begins: Offsets, ends: Offsets, given: Iterable[TopicPartition], latest: Offsets, *, committed: bool
) -> list[str]:
    """What is impossible about a batch, in words. ``given``: partitions whose beginning the user gave as an offset;
    ``latest``: the ends of the logs whose end the user gave as an offset, as readers of ``committed`` records see them,
    or as all others do."""
    at = "the last stable offset, where a transaction may be open, is" if committed else "its log ends at"
    return [
        *(
            f"{partition} is to be read from offset {begins[partition]} to {ends[partition]}"
            for partition in sorted(given)
            if begins[partition] > ends[partition]
        ),
        *(
            f"{partition} is to be read up to offset {ends[partition]}, and {at} {end}"
            for partition, end in sorted(latest.items())
            if ends[partition] > end
        ),
    ]


def ends_lost(begins: Offsets, ends: Offsets) -> list[str]:
    """What the end of a batch gives away of losses, in words: partitions that are gone, or end before where they were
    read to."""
    said = []
    for partition, begin in sorted(begins.items()):
        if partition not in ends:
            said.append(f"{partition} is gone: it was read up to offset {begin}")
        elif ends[partition] < begin:
            said.append(
                f"{partition} ends at offset {ends[partition]}, and it was read up to {begin}: "
                "was the topic deleted and created anew?"
            )
    return said


def unread(begins: Offsets, ends: Offsets) -> list[TopicPartition]:
    """The partitions that a batch reads from, or begins with."""
    return [partition for partition, end in sorted(ends.items()) if end > begins.get(partition, -1)]


def losses(begins: Offsets, ends: Offsets, earliest: Offsets) -> list[str]:
    """What a batch should read but no longer can, in words; nothing if all is there.

    ``begins``: where the last batch ended, of the partitions that it knew; ``ends``: where this one is to end;
    ``earliest``: the first offset that the log has now, of those partitions that are ``unread`` and still there.
    """
    said = ends_lost(begins, ends)
    for partition in unread(begins, ends):
        begin, end, first = begins.get(partition), ends[partition], earliest.get(partition)
        if first is None:
            if end > 0:
                said.append(f"{partition} is gone: it was to be read from offset {begin or 0} to {end}")
        elif begin is None:
            if first > 0:
                said.append(f"{partition}, which is new, begins at offset {first}: those before it were deleted")
        elif first > begin:
            said.append(f"{partition} begins at offset {first}: those from {begin} on were deleted")
    return said


def readable(begins: Offsets, ends: Offsets, earliest: Offsets) -> list[OffsetRange]:
    """What a batch can read, whatever is lost; the arguments are those of ``losses``."""
    left = {partition: max(begins.get(partition, 0), first) for partition, first in earliest.items()}
    return [each for each in ranges(left, {partition: ends[partition] for partition in left}) if each.size > 0]
