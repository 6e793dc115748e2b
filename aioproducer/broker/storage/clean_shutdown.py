"""What a cluster that is closed properly leaves behind, so that its next start need not read every batch.

Kafka's ``.kafka_cleanshutdown``, and its indexes and snapshots in one. It is there only while nobody uses the
directory: the first thing that a start does is to take it away. So after a crash there is none, and every batch is read
and checked. The file has frames as the journal has, one for each partition; without it, or without the frame of a
partition, that one is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aioproducer.broker.log.log_checkpoint import LogCheckpoint, SegmentCheckpoint
from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.frames import Key, frame, read_frames

CLEAN_SHUTDOWN = "clean.shutdown"
_NEW = "clean.shutdown.new"


def write_clean_shutdown(files: Files, logs: Mapping[Key, LogCheckpoint]) -> None:
    """``logs`` by the keys of their partitions; all that they state is synced. Raises OSError."""
    files.remove(_NEW)
    files.append(_NEW, [frame({key: checkpoint}) for key, checkpoint in logs.items()])
    # A name for what is not there yet would be believed.
    files.sync(_NEW)
    files.rename(_NEW, CLEAN_SHUTDOWN)
    files.sync_directory("")


def read_clean_shutdown(files: Files) -> dict[Key, LogCheckpoint]:
    """What was written. Raises OSError."""
    data = files.read(CLEAN_SHUTDOWN, 0, size) if (size := files.size(CLEAN_SHUTDOWN)) else b""
    return {key: _checkpoint(*value) for found in read_frames(data) for key, value in found.entries or ()}


def remove_clean_shutdown(files: Files) -> None:
    """It is gone when this returns: nothing may be changed before that. Raises OSError."""
    files.remove(_NEW)
    if CLEAN_SHUTDOWN in files.names(""):
        files.remove(CLEAN_SHUTDOWN)
        files.sync_directory("")


def _checkpoint(segments: list[tuple[int, list[int]]], *rest: Any) -> LogCheckpoint:
    return LogCheckpoint([SegmentCheckpoint(*one) for one in segments], *rest)
