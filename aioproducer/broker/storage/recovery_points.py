"""The offset up to which each log is certainly on disk: Kafka's ``recovery-point-offset-checkpoint``.

A crash tears only bytes that were not synced. So bad bytes after the recovery point were left by a crash (and no answer
revealed them, if every commit is synced); bad bytes before it are damage, which no crash explains.

Like the journal the file consists of frames. A frame is written after a sync and not synced itself: if a crash loses
it, an older recovery point counts, which is still true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.frames import Key, frame, read_frames

RECOVERY_POINTS = "recovery.points"
_NEW = "recovery.points.new"
_LARGE = 1024 * 1024
"""Bytes at which the file is rewritten."""


class RecoveryPoints:
    """Synced offsets by partition, and the synced bytes of the journal by ``MetadataJournal.point``."""

    def __init__(self) -> None:
        self._points: dict[Key, int] = {}
        self._size = 0

    def load(self, files: Files) -> None:
        """Reads all good frames of the file. Raises OSError."""
        self._size = files.size(RECOVERY_POINTS)
        data = files.read(RECOVERY_POINTS, 0, self._size) if self._size else b""
        for found in read_frames(data):
            for key, point in found.entries or ():
                self._points[key] = max(point, self.of(key))
        files.remove(_NEW)

    def of(self, key: Key) -> int:
        """The recovery point of this key; 0 if there is none."""
        return self._points.get(key, 0)

    def partitions(self, topic_id: str) -> list[int]:
        """The partitions of a topic that have a recovery point."""
        return [int(key[1]) for key in self._points if key[0] == topic_id]

    def forget(self, is_known: Callable[[Key], bool]) -> None:
        """Drops the recovery points of unknown keys."""
        self._points = {key: point for key, point in self._points.items() if is_known(key)}

    def last_generation(self, kind: str) -> int:
        """The largest generation in keys of this kind; 0 if there is none."""
        return max((int(key[1]) for key in self._points if key[0] == kind), default=0)

    def advance(self, files: Files, points: Mapping[Key, int]) -> None:
        """Records that everything up to ``points`` is synced. Raises OSError."""
        if not points:
            return
        self._points.update(points)
        if self._size < _LARGE:
            data = frame(points)
            files.append(RECOVERY_POINTS, [data])
        else:
            data = frame(self._points)
            files.remove(_NEW)
            files.append(_NEW, [data])
            files.sync(_NEW)
            files.rename(_NEW, RECOVERY_POINTS)
            self._size = 0
        self._size += len(data)
