"""The bound on the memory of units that hold records: ``buffer.memory`` bytes, beside what batches hold.

A unit holds its records from ``unit.send`` to its end, because they may have to be committed anew. Units that need more
wait, first come, first served. If open units held all of the memory and each of them waited for more, none could ever
end. So the unit that began to hold memory first never waits: it may go beyond the bound, up to what one unit may hold.
So all units together hold at most twice ``buffer.memory``.

Rules only: ``grant()`` is called for each wait that has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import final

from aioproducer.errors import UnitTooLargeException
from aioproducer.producer.units.unit_member import UnitMember
from aioproducer.producer.units.unit_state import UnitState


@final
class MemoryWait:
    """One record, or some offsets, without room yet."""

    __slots__ = ("grant", "member", "over", "size")

    def __init__(self, member: UnitMember, size: int, grant: Callable[[], object]) -> None:
        self.member = member
        self.size = size
        self.grant = grant
        self.over = False
        """It was granted, or its caller has left."""


@final
class UnitMemory:
    """Counts the bytes that units hold."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.held = 0
        self._waits: deque[MemoryWait] = deque()
        self._holders: dict[UnitMember, None] = {}
        """The units that hold memory, in the order in which they began to; the first open one has the privilege."""

    def __len__(self) -> int:
        """How many callers wait."""
        return sum(not wait.over for wait in self._waits)

    def check(self, member: UnitMember, size: int) -> None:
        """UnitTooLargeException if the unit could never hold this much more."""
        if member.held + size > self.total:
            raise UnitTooLargeException(
                f"the unit holds {member.held} bytes, and {size} more do not fit in buffer.memory={self.total}: "
                "raise it, or make the unit smaller"
            )

    def take(self, member: UnitMember, size: int, grant: Callable[[], object]) -> MemoryWait | None:
        """None if the bytes were taken; otherwise ``grant()`` is called when they are."""
        self._tidy()
        if (not self._waits and self.held + size <= self.total) or self._is_privileged(member, size):
            self._charge(member, size)
            return None
        wait = MemoryWait(member, size, grant)
        self._waits.append(wait)
        return wait

    def leave(self, wait: MemoryWait) -> None:
        """The caller waits no more."""
        if not wait.over:
            wait.over = True
            self._serve()

    def release(self, member: UnitMember) -> None:
        """The unit has ended, and holds nothing any more."""
        self.held -= member.held
        member.held = 0
        self._holders.pop(member, None)
        self._serve()

    def closed(self, member: UnitMember) -> None:
        """The block has ended: the unit needs no more, and the next open unit has the privilege."""
        self._holders.pop(member, None)
        self._serve()

    def _charge(self, member: UnitMember, size: int) -> None:
        self.held += size
        member.held += size
        if member.state is UnitState.OPEN:
            self._holders.setdefault(member)

    def _is_privileged(self, member: UnitMember, size: int) -> bool:
        """Whether this is the open unit that has held memory for longest. If it does not fit even so, units that have
        ended hold the rest, and will release it."""
        return next(iter(self._holders), None) is member and self.held + size <= 2 * self.total

    def _serve(self) -> None:
        self._tidy()
        while self._waits and self.held + self._waits[0].size <= self.total:
            self._grant(self._waits[0])
            self._tidy()
        for wait in tuple(self._waits):
            if not wait.over and self._is_privileged(wait.member, wait.size):
                self._grant(wait)
        self._tidy()

    def _grant(self, wait: MemoryWait) -> None:
        wait.over = True
        self._charge(wait.member, wait.size)
        wait.grant()

    def _tidy(self) -> None:
        while self._waits and self._waits[0].over:
            self._waits.popleft()
