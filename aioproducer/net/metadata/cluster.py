"""An immutable snapshot of the cluster's metadata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, overload
from uuid import UUID

from aioproducer.errors import LeaderNotAvailableException, UnknownTopicOrPartitionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.addresses import Address
from aioproducer.types import PartitionInfo, TopicPartition

NO_TOPIC_ID = UUID(int=0)

CHUNK = 32
"""Partitions in one tuple. Work on as many takes well below half a millisecond."""


class Node(NamedTuple):
    """A broker of the cluster."""

    node_id: int
    address: Address
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Partitions(Sequence[PartitionInfo]):
    """The partitions of a topic, by index, in tuples of CHUNK; only the last may have fewer, but not none.

    Metadata with one partition changed shares all other chunks, and 100,000 partitions are let go of in small steps.
    """

    chunks: tuple[tuple[PartitionInfo, ...], ...] = ()

    @staticmethod
    def of(infos: Iterable[PartitionInfo]) -> Partitions:
        """All of them at once."""
        every = tuple(infos)
        return Partitions(tuple(every[start : start + CHUNK] for start in range(0, len(every), CHUNK)))

    def with_changes(self, infos: Iterable[PartitionInfo]) -> Partitions:
        """These in the places of the same partitions."""
        chunks = list(self.chunks)
        changed: dict[int, list[PartitionInfo]] = {}
        for info in infos:
            number, place = divmod(info.partition, CHUNK)
            changed.setdefault(number, list(chunks[number]))[place] = info
        for number, chunk in changed.items():
            chunks[number] = tuple(chunk)
        return Partitions(tuple(chunks))

    def __len__(self) -> int:
        return (len(self.chunks) - 1) * CHUNK + len(self.chunks[-1]) if self.chunks else 0

    def __iter__(self) -> Iterator[PartitionInfo]:
        return chain.from_iterable(self.chunks)

    @overload
    def __getitem__(self, index: int) -> PartitionInfo: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[PartitionInfo, ...]: ...

    def __getitem__(self, index: int | slice) -> PartitionInfo | tuple[PartitionInfo, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        number, place = divmod(index if index >= 0 else index + len(self), CHUNK)
        if number < 0:
            raise IndexError("there is no such partition")
        return self.chunks[number][place]


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic and its partitions; ``topic_id`` is zero where the broker is too old to have one."""

    name: str
    topic_id: UUID
    partitions: Partitions

    def led(self, partition: int) -> PartitionInfo:
        """The partition, if it has a leader; UnknownTopicOrPartitionException or LeaderNotAvailableException if not."""
        if partition >= len(self.partitions):
            raise UnknownTopicOrPartitionException(
                f"there is no {TopicPartition(self.name, partition)}: "
                f"topic {self.name!r} has partitions 0 to {len(self.partitions) - 1}"
            )
        info = self.partitions[partition]
        if info.leader < 0:
            raise LeaderNotAvailableException(f"{TopicPartition(self.name, partition)} has no leader")
        return info


@dataclass(frozen=True, slots=True)
class Cluster:
    """Brokers, and the requested topics. ``errors`` are the topics the brokers gave no metadata for."""

    nodes: Mapping[int, Node] = field(default_factory=dict)
    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)
    controller_id: int = -1
    cluster_id: str | None = None
