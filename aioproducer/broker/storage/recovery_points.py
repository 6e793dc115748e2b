"""How far each log was certainly on disk: Kafka's ``recovery-point-offset-checkpoint``.

A crash tears only what was not synced. So what is bad from there on is what a crash left, and no answer revealed it, if
every commit is synced; what is bad before that is damage, which no crash explains.

The file has frames as the journal has. Each is written after a sync, and not synced itself: one that is lost leaves an
older point, which is true as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aioproducer.broker.storage.files import Files
from aioproducer.broker.storage.frames import Key, frame, read_frames

RECOVERY_POINTS = "recovery.points"
_NEW = "recovery.points.new"
_LARGE = 1024 * 1024
"""Bytes after which the file is rewritten."""


class RecoveryPoints:
    """Offsets by the keys of partitions, and bytes by the journal's (``MetadataJournal.point``)."""

    def __init__(self) -> None:
        self._points: dict[Key, int] = {}
        self._size = 0

    def load(self, files: Files) -> None:
        """Reads the file, as far as it is good. Raises OSError."""
        self._size = files.size(RECOVERY_POINTS)
        data = files.read(RECOVERY_POINTS, 0, self._size) if self._size else b""
        for found in read_frames(data):
            for key, point in found.entries or ():
                self._points[key] = max(point, self.of(key))
        files.remove(_NEW)

    def of(self, key: Key) -> int:
        """0 if there is none."""
        return self._points.get(key, 0)

    def partitions(self, topic_id: str) -> list[int]:
        """Those of a topic that have one."""
        return [int(key[1]) for key in self._points if key[0] == topic_id]

    def forget(self, is_known: Callable[[Key], bool]) -> None:
        """All but those of keys that are known."""
        self._points = {key: point for key, point in self._points.items() if is_known(key)}

    def last_generation(self, kind: str) -> int:
        """The largest second part of keys of this kind; 0 if there is none."""
        return max((int(key[1]) for key in self._points if key[0] == kind), default=0)

    def advance(self, files: Files, points: Mapping[Key, int]) -> None:
        """All of this is synced. Raises OSError."""
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
