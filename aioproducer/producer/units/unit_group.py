"""The units that wait, those in the transaction, and those to be committed anew. Rules only: no clock, no loop.

    end() ──► fresh ──┐                    ┌─► committed()
                      ├─► begin(), join() ─┤
              again ──┘                    └─► aborted() ──► again, or failed

The group commits units in the order in which their blocks ended: parts of an aborted transaction come before all that
ended later, and a transaction takes one part, or what is fresh. A transaction of fresh units takes more of them until
its commit begins.

A unit has its ``patience`` to join a transaction. If one is aborted because of some of its units, the time of all
others starts again, of those in it and of those that waited behind it: no unit's time is used up by the record of
another. This is bounded: no unit joins a transaction later than ``MOST_TIMES`` × ``patience`` after its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, final

from aioproducer.errors import DeliveryError
from aioproducer.producer.units.unit_blame import is_certain, is_of_a_late_record, is_of_the_transaction, parts
from aioproducer.producer.units.unit_member import UnitMember
from aioproducer.producer.units.unit_state import UnitState

S = UnitState

MOST_TIMES: Final = 3
"""How often a unit may have its time, counted from the end of its block."""
TOGETHER: Final = 0.1
"""Units that joined a transaction within this part of their time have had the same time in it."""


class Failed(NamedTuple):
    """A unit that has failed, and why."""

    member: UnitMember
    error: DeliveryError


@final
class UnitGroup:
    """The units of a producer from the ends of their blocks on. Times are the loop's, in seconds."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        """Seconds that a unit has to join a transaction."""
        self.waiting = 0
        """Units that have ended and are in no transaction."""
        self.joined: list[UnitMember] = []
        """Units in the transaction, in the order of their ends."""
        self._fresh: deque[UnitMember] = deque()
        """Units that have been in no transaction yet. Those withdrawn stay until they are first."""
        self._again: deque[list[UnitMember]] = deque()
        """The parts of an aborted transaction, all of them before ``fresh``."""
        self._takes_fresh = False
        self._ends = 0

    def busy(self) -> bool:
        """Whether a unit waits or is in a transaction."""
        return self.waiting > 0 or bool(self.joined)

    def end(self, member: UnitMember, now: float) -> None:
        """The block of the unit has ended."""
        member.become(S.WAITING)
        self._ends += 1
        member.number = self._ends
        member.deadline = now + self.patience
        member.last_deadline = now + MOST_TIMES * self.patience
        self._fresh.append(member)
        self.waiting += 1

    def withdraw(self, member: UnitMember) -> bool:
        """Takes a unit out that is in no transaction; False if it is too late."""
        if member.state is not S.WAITING:
            return False
        self._fail(member)
        return True

    def begin(self) -> list[UnitMember]:
        """The units of the next transaction, at least one if any waits."""
        assert not self.joined, "the last transaction has not ended"
        while self._again:
            part = [member for member in self._again.popleft() if member.state is S.WAITING]
            if part:
                self._takes_fresh = False
                return self._join(part)
        self._takes_fresh = True
        return self.join()

    def join(self) -> list[UnitMember]:
        """Units that the transaction takes besides those that it has."""
        if not self._takes_fresh:
            return []
        found = [member for member in self._fresh if member.state is S.WAITING]
        self._fresh.clear()
        return self._join(found)

    def _join(self, members: list[UnitMember]) -> list[UnitMember]:
        for member in members:
            member.become(S.JOINED)
        self.waiting -= len(members)
        self.joined += members
        return members

    def committed(self) -> list[UnitMember]:
        """The transaction is committed; returns its units."""
        members = self._leave()
        for member in members:
            member.become(S.COMMITTED)
        return members

    def aborted(self, own: Mapping[UnitMember, DeliveryError], shared: DeliveryError, now: float) -> list[Failed]:
        """The transaction is aborted: nothing of it will be read. Returns the units that fail; the others wait again.

        ``own`` has the errors of units that met one; ``shared`` is that of the transaction.
        """
        members = self._leave()
        at_fault = {
            member: error
            for member, error in own.items()
            if member.state is S.JOINED and not is_of_the_transaction(error)  # else it failed during a long abort
        }
        if len(members) == 1:
            (member,) = members
            error = at_fault.get(member, shared)
            if member in at_fault or not is_of_the_transaction(shared) or now >= member.deadline:
                member.become(S.FAILED)
                if member in at_fault or not is_of_the_transaction(shared):
                    self.start_again(now)
                return [Failed(member, error)]
            member.setback = shared
            self._wait_again([[member]])
            return []
        failed = [
            Failed(member, error)
            for member, error in at_fault.items()
            if is_certain(error) or (is_of_a_late_record(error) and self.has_had_its_time(member, now))
        ]
        for member, _ in failed:
            member.become(S.FAILED)
        rest = [member for member in members if member.state is S.JOINED]
        of_another = bool(at_fault) and not is_of_the_transaction(shared)
        for member in rest:
            member.setback = at_fault.get(member, None if of_another else shared)
        suspects = {member for member in rest if member in at_fault}
        self._wait_again(parts(rest, suspects, found=bool(failed)))
        if at_fault or not is_of_the_transaction(shared):
            self.start_again(now)
        return failed

    def has_had_its_time(self, member: UnitMember, now: float) -> bool:
        """Whether a record of the unit that is not delivered now was not delivered in all of the unit's time."""
        return member.deadline - now <= TOGETHER * self.patience

    def start_again(self, now: float) -> None:
        """A transaction is aborted because of some of its units: those that wait have their time again. The order of
        their deadlines remains that of their ends."""
        for member in self._in_order():
            member.deadline = max(member.deadline, min(now + self.patience, member.last_deadline))

    def _wait_again(self, again: list[list[UnitMember]]) -> None:
        for part in reversed(again):
            for member in part:
                member.become(S.WAITING)
            self.waiting += len(part)
            self._again.appendleft(part)

    def expire(self, now: float) -> list[UnitMember]:
        """Units that have waited for too long: they fail. Deadlines are in the order of the ends."""
        late: list[UnitMember] = []
        for member in self._in_order():
            if member.deadline > now:
                break
            late.append(member)
        for member in late:
            self._fail(member)
        return late

    def lost(self) -> list[UnitMember]:
        """The end of the transaction is not known in time, or never will be: its units fail."""
        members = self._leave()
        for member in members:
            member.become(S.FAILED)
        return members

    def give_up(self) -> list[UnitMember]:
        """Fails every unit that waits."""
        members = list(self._in_order())
        for member in members:
            self._fail(member)
        self._again.clear()
        self._fresh.clear()
        return members

    def _in_order(self) -> Iterator[UnitMember]:
        """The units that wait, in the order of their ends."""
        for part in self._again:
            yield from (member for member in part if member.state is S.WAITING)
        yield from (member for member in self._fresh if member.state is S.WAITING)

    def _fail(self, member: UnitMember) -> None:
        member.become(S.FAILED)
        self.waiting -= 1
        while self._fresh and self._fresh[0].state is not S.WAITING:
            self._fresh.popleft()

    def _leave(self) -> list[UnitMember]:
        members, self.joined = self.joined, []
        self._takes_fresh = False
        return members
