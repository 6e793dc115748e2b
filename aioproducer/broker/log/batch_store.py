"""Where the log of a partition keeps its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, overload

from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.log_checkpoint import SegmentCheckpoint
from aioproducer.broker.log.producer_state import ProducerStateManager
from aioproducer.protocol.primitives import Buffer
from aioproducer.records.record_batch import RecordBatch


class Batches(Protocol):
    """Whole batches with their offsets, by their place in the log, counted from 0. They never change."""

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, index: int) -> Buffer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Buffer]: ...

    def __iter__(self) -> Iterator[Buffer]: ...

    def size(self, index: int) -> int:
        """Bytes of a batch."""

    def append(self, batch: bytearray) -> None:
        """Raises :class:`KafkaStorageException` if it could not take the batch."""

    def delete(self, count: int, log_start_offset: int, producer_state: ProducerStateManager) -> None:
        """The log begins with this offset from now on; its first batches, so many of them, lie wholly before it.

        What is remembered of their producers is not to be forgotten with them.
        """

    def configure(self, config: TopicConfig) -> None:
        """Follows ``config`` from now on."""

    def load(self, log_start_offset: int) -> Iterator[RecordBatch]:
        """What is here from another time, called once and before all else."""

    def segments(self) -> tuple[list[SegmentCheckpoint], int]:
        """The files they are in, and how many in the first one are deleted, for :meth:`restore` after a restart."""

    def restore(self, segments: Sequence[SegmentCheckpoint], deleted: int) -> bool:
        """In place of :meth:`load`: takes in what there was, if the files are as they were then."""

    def reset(self) -> None:
        """Removes all batches: the log continues at another offset."""


class MemoryBatches(list[bytearray]):
    """:class:`Batches` in memory, gone with the process."""

    def size(self, index: int) -> int:
        return len(self[index])

    def delete(self, count: int, log_start_offset: int, producer_state: ProducerStateManager) -> None:
        del self[:count]

    def configure(self, config: TopicConfig) -> None:
        pass

    def load(self, log_start_offset: int) -> Iterator[RecordBatch]:
        return iter(())

    def segments(self) -> tuple[list[SegmentCheckpoint], int]:
        return [], 0

    def restore(self, segments: Sequence[SegmentCheckpoint], deleted: int) -> bool:
        return False

    def reset(self) -> None:
        self.clear()
