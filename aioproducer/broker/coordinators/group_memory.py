"""Bounds the memory of group members: what they send is kept until their sessions end."""

from __future__ import annotations

from aioproducer.errors import GroupMaxSizeReachedException

MOST_OF_GROUP = 16 * 1024 * 1024
"""Bytes of the members of one group. In Kafka, what it keeps of a whole group has to fit in a record of 1 MiB."""

MOST_OF_ALL = 128 * 1024 * 1024
"""Bytes of the members of all groups together."""

OF_MEMBER = 2048
"""Bytes that a member takes besides the texts that it sends, about."""


class GroupMemory:
    """Bytes of all groups."""

    def __init__(self, size: int = MOST_OF_ALL) -> None:
        self.size = size
        self.used = 0


class MemoryOfGroup:
    """Bytes of one group, which count among those of all."""

    def __init__(self, of_all: GroupMemory) -> None:
        self._of_all = of_all
        self.used = 0

    def check(self, size: int) -> None:
        """Raises :class:`GroupMaxSizeReachedException` if there is no room for this many more bytes."""
        if size <= 0:
            return
        if self.used + size > MOST_OF_GROUP:
            raise GroupMaxSizeReachedException(f"the members of a group take at most {MOST_OF_GROUP} bytes")
        if self._of_all.used + size > self._of_all.size:
            raise GroupMaxSizeReachedException(f"the members of all groups take at most {self._of_all.size} bytes")

    def take(self, size: int) -> None:
        """Counts this many more bytes; a negative ``size`` gives bytes back."""
        self.used += size
        self._of_all.used += size
