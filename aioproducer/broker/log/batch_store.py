"""The store of a log's batches: the interface, and the store in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, overload

from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.log.log_checkpoint import SegmentCheckpoint
from aioproducer.broker.log.producer_state import ProducerStateManager
from aioproducer.protocol.primitives import Buffer
from aioproducer.records.record_batch import RecordBatch


class Batches(Protocol):
    """Whole batches with their offsets, by their place in the log, counted from 0. A stored batch never changes."""

    def use(self, producer_state: ProducerStateManager) -> None:
        """Called once, before any other method: the state of the log's producers, which must survive a restart although
        the batches are deleted that it comes from."""

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, index: int) -> Buffer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Buffer]: ...

    def __iter__(self) -> Iterator[Buffer]: ...

    def size(self, index: int) -> int:
        """Bytes of a batch."""

    def append(self, batch: bytearray) -> None:
        """Raises :class:`KafkaStorageException` if the batch cannot be stored."""

    def delete(self, count: int, log_start_offset: int) -> None:
        """Moves the start of the log to this offset, and deletes the first ``count`` batches, which lie wholly before
        it."""

    def configure(self, config: TopicConfig) -> None:
        """Applies the topic's new config."""

    def load(self, log_start_offset: int) -> Iterator[RecordBatch]:
        """Yields the batches of an earlier run; called once, before anything is read or appended."""

    def segments(self) -> tuple[list[SegmentCheckpoint], int]:
        """The segment files, and the number of deleted batches in the first one, for :meth:`restore` after a
        restart."""

    def restore(self, segments: Sequence[SegmentCheckpoint], deleted: int) -> bool:
        """Instead of :meth:`load`: restores the batches without reading them. False if the files have changed."""

    def reset(self) -> None:
        """Removes all batches: the log continues at another offset, with a :meth:`delete` of none up to there."""


class MemoryBatches(list[bytearray]):
    """:class:`Batches` in memory, which end with the process."""

    def use(self, producer_state: ProducerStateManager) -> None:
        pass

    def size(self, index: int) -> int:
        return len(self[index])

    def delete(self, count: int, log_start_offset: int) -> None:
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
