"""The state of a partition's log, which a clean shutdown writes down."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aioproducer.broker.log.producer_state import ProducerSnapshot


class SegmentCheckpoint(NamedTuple):
    """A segment of the log: the offset of its first record, and the size of each of its batches."""

    base_offset: int
    sizes: Sequence[int]


class LogCheckpoint(NamedTuple):
    """What reading every batch would find. The first ``deleted`` batches of the first segment are deleted."""

    segments: Sequence[SegmentCheckpoint]
    deleted: int
    log_start_offset: int
    log_end_offset: int
    base_offsets: Sequence[int]
    max_timestamps: Sequence[int]
    producers: Sequence[ProducerSnapshot]
    open_transactions: Sequence[tuple[int, int]]
    """Producer id and first offset."""
    aborted_transactions: Sequence[tuple[int, int, int]]
    """Producer id, first and last offset."""
    leader_epochs: Sequence[tuple[int, int]]
    """Epoch and first offset."""
