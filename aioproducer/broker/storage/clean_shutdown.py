"""The file that a clean shutdown writes: the state of every log, so that the next start need not read the batches.

It is Kafka's ``.kafka_cleanshutdown`` together with its indexes and snapshots. A start removes the file before it
changes anything, so after a crash there is none, and the start reads and checks every batch. Like the journal the file
consists of frames, one for each partition. A log without a frame is read.
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
    """Writes the file. ``logs`` has the checkpoints by partition; everything in them is synced. Raises OSError."""
    files.remove(_NEW)
    files.append(_NEW, [frame({key: checkpoint}) for key, checkpoint in logs.items()])
    # The next start trusts a file of this name, so its content must be on disk before the name is.
    files.sync(_NEW)
    files.rename(_NEW, CLEAN_SHUTDOWN)
    files.sync_directory("")


def read_clean_shutdown(files: Files) -> dict[Key, LogCheckpoint]:
    """The checkpoints that the last clean shutdown wrote; empty after a crash. Raises OSError."""
    data = files.read(CLEAN_SHUTDOWN, 0, size) if (size := files.size(CLEAN_SHUTDOWN)) else b""
    return {key: _checkpoint(*value) for found in read_frames(data) for key, value in found.entries or ()}


def remove_clean_shutdown(files: Files) -> None:
    """Removes the file and syncs the removal. No other file may change before that. Raises OSError."""
    files.remove(_NEW)
    if CLEAN_SHUTDOWN in files.names(""):
        files.remove(CLEAN_SHUTDOWN)
        files.sync_directory("")


def _checkpoint(segments: list[tuple[int, list[int]]], *rest: Any) -> LogCheckpoint:
    return LogCheckpoint([SegmentCheckpoint(*one) for one in segments], *rest)
