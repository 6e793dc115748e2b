from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioproducer.errors import UnitTooLargeException
from aioproducer.producer.units.unit_member import UnitMember
from aioproducer.producer.units.unit_memory import MemoryWait, UnitMemory
from aioproducer.producer.units.unit_state import UnitState

TOTAL = 100


def test_a_unit_that_can_never_fit_is_refused() -> None:
    memory = UnitMemory(TOTAL)
    member = UnitMember()
    memory.take(member, 60, list)
    memory.check(member, 40)
    with pytest.raises(UnitTooLargeException, match="holds 60 bytes, and 41 more do not fit"):
        memory.check(member, 41)


def test_the_unit_that_holds_memory_for_longest_never_waits() -> None:
    """Otherwise two units that hold half of it each would wait for each other."""
    memory = UnitMemory(TOTAL)
    first, second, granted = UnitMember(), UnitMember(), list[str]()
    assert memory.take(first, 50, list) is None
    assert memory.take(second, 50, list) is None
    assert memory.take(second, 10, lambda: granted.append("second")) is not None
    assert memory.take(first, 50, list) is None
    first.become(UnitState.WAITING)
    memory.closed(first)
    assert granted == ["second"], "it is the first of the open ones now"
    memory.release(first)
    assert memory.held == 60


class Memories(RuleBasedStateMachine):
    """Open units take memory; those that have ended release it later."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = UnitMemory(TOTAL)
        self.open: list[UnitMember] = []
        self.ended: list[UnitMember] = []
        self.waits: dict[UnitMember, MemoryWait] = {}

    @rule()
    def begin(self) -> None:
        self.open.append(UnitMember())

    @rule(data=st.data(), size=st.integers(1, TOTAL))
    @precondition(lambda self: any(one not in self.waits for one in self.open))
    def take(self, data: st.DataObject, size: int) -> None:
        member = data.draw(st.sampled_from([one for one in self.open if one not in self.waits]))
        try:
            self.memory.check(member, size)
        except UnitTooLargeException:
            assert member.held + size > TOTAL
            return
        wait = self.memory.take(member, size, lambda: self.waits.pop(member))
        if wait is not None:
            self.waits[member] = wait

    @rule(data=st.data())
    @precondition(lambda self: self.waits)
    def leave(self, data: st.DataObject) -> None:
        wait = self.waits.pop(data.draw(st.sampled_from(list(self.waits))))
        self.memory.leave(wait)

    @rule(data=st.data())
    @precondition(lambda self: any(one not in self.waits for one in self.open))
    def end(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from([one for one in self.open if one not in self.waits]))
        self.open.remove(member)
        member.become(UnitState.WAITING)
        self.memory.closed(member)
        self.ended.append(member)

    @rule()
    @precondition(lambda self: self.ended)
    def release(self) -> None:
        self.memory.release(self.ended.pop(0))

    @invariant()
    def it_is_bounded_and_counted(self) -> None:
        assert self.memory.held == sum(one.held for one in (*self.open, *self.ended))
        assert self.memory.held <= 2 * TOTAL
        assert len(self.memory) == len(self.waits)

    @invariant()
    def somebody_can_go_on(self) -> None:
        """Either not all open units wait, or units that have ended will release memory."""
        if self.waits:
            assert len(self.waits) < len(self.open) or any(one.held for one in self.ended)


TestMemories = Memories.TestCase
