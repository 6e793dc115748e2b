"""The group against a plain model: every unit ends once, in order, and for a reason of its own."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from aioproducer.errors import (
    DeliveryError,
    KafkaError,
    Outcome,
    RecordTooLargeException,
    TimeoutException,
    TopicAuthorizationException,
    TransactionAbortableException,
)
from aioproducer.producer.units.unit_group import MOST_TIMES, UnitGroup
from aioproducer.producer.units.unit_member import UnitMember
from aioproducer.producer.units.unit_state import UnitState

PATIENCE = 10.0
POISONS = (None, None, None, None, RecordTooLargeException, TopicAuthorizationException, TimeoutException)
OF_THE_TRANSACTION = DeliveryError.of(TransactionAbortableException("the transaction"), Outcome.NOT_SENT)


def refused(error: KafkaError) -> DeliveryError:
    return DeliveryError.of(error, Outcome.NOT_SENT)


def late(topic: str = "gone") -> DeliveryError:
    return DeliveryError.of(TimeoutException("late"), Outcome.NOT_SENT, (topic, 0))


class Groups(RuleBasedStateMachine):
    """``poison`` are the units that no transaction can commit, and their errors."""

    def __init__(self) -> None:
        super().__init__()
        self.group = UnitGroup(PATIENCE)
        self.now = 0.0
        self.ended: list[UnitMember] = []
        self.ends: dict[UnitMember, float] = {}
        self.poison: dict[UnitMember, DeliveryError] = {}
        self.committed: list[UnitMember] = []
        self.failed: list[UnitMember] = []

    @rule(poisoned=st.sampled_from(POISONS))
    def end(self, poisoned: type[KafkaError] | None) -> None:
        member = UnitMember()
        self.group.end(member, self.now)
        self.ends[member] = self.now
        self.ended.append(member)
        if poisoned is TimeoutException:
            self.poison[member] = late()
        elif poisoned is not None:
            self.poison[member] = refused(poisoned("its own"))

    @rule(seconds=st.floats(0, 4))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(data=st.data())
    @precondition(lambda self: self.ended)
    def withdraw(self, data: st.DataObject) -> None:
        member = data.draw(st.sampled_from(self.ended))
        waited = member.state is UnitState.WAITING
        assert self.group.withdraw(member) is waited
        if waited:
            self.failed.append(member)

    @rule()
    @precondition(lambda self: not self.group.joined)
    def begin(self) -> None:
        late = self.group.expire(self.now)
        assert all(member.deadline <= self.now for member in late)
        self.failed += late
        waiting = self.group.waiting
        members = self.group.begin()
        assert bool(members) is bool(waiting)
        assert all(member.deadline > self.now for member in members)

    @rule()
    @precondition(lambda self: self.group.joined)
    def join(self) -> None:
        before = list(self.group.joined)
        more = self.group.join()
        assert self.group.joined == before + more

    @rule(known=st.booleans(), transient=st.booleans())
    @precondition(lambda self: self.group.joined)
    def commit(self, known: bool, transient: bool) -> None:
        """``known``: the record that failed is; ``transient``: the coordinator aborts it for a reason of its own."""
        joined = list(self.group.joined)
        poison = {member: self.poison[member] for member in joined if member in self.poison}
        if not poison and not transient:
            assert self.group.committed() == joined
            self.committed += joined
            return
        shared = OF_THE_TRANSACTION if transient else next(iter(poison.values()))
        failed = self.group.aborted({} if transient or not known else poison, shared, self.now)
        for member, error in failed:
            assert member in poison or self.now >= member.deadline, "a blameless unit has failed"
            assert error is not None
            self.failed.append(member)

    @rule()
    @precondition(lambda self: self.group.joined)
    def lose(self) -> None:
        joined = list(self.group.joined)
        assert self.group.lost() == joined
        self.failed += joined

    @rule()
    def give_up(self) -> None:
        waiting = [member for member in self.ended if member.state is UnitState.WAITING]
        assert self.group.give_up() == waiting
        self.failed += waiting

    @invariant()
    def every_unit_is_in_one_place(self) -> None:
        places = [member for member in self.ended if member.state is UnitState.WAITING]
        assert len(places) == self.group.waiting
        assert [member for member in self.ended if member.state is UnitState.JOINED] == self.group.joined
        assert self.group.busy() is bool(places or self.group.joined)
        assert len(self.failed) == len(set(self.failed))
        assert {member for member in self.ended if member.state is UnitState.FAILED} == set(self.failed)

    @invariant()
    def deadlines_are_in_the_order_of_the_ends_and_bounded(self) -> None:
        waiting = [member for member in self.ended if member.state is UnitState.WAITING]
        assert [member.deadline for member in waiting] == sorted(member.deadline for member in waiting)
        assert all(member.deadline <= self.ends[member] + MOST_TIMES * PATIENCE for member in waiting)

    @invariant()
    def commits_are_in_the_order_of_the_ends(self) -> None:
        numbers = [member.number for member in self.committed]
        assert numbers == sorted(set(numbers))
        assert not any(member in self.poison for member in self.committed)

    def teardown(self) -> None:
        """All that is left ends: the poisoned units fail, and the others are committed."""
        while self.group.busy():
            if not self.group.joined:
                self.now = 0.0  # time stands still, so that nothing expires
                self.group.begin()
            self.commit(known=False, transient=False)
            self.commits_are_in_the_order_of_the_ends()
        assert {member.state for member in self.ended} <= {UnitState.COMMITTED, UnitState.FAILED}


TestGroups = Groups.TestCase


def ended(group: UnitGroup, count: int) -> list[UnitMember]:
    members = [UnitMember() for _ in range(count)]
    for member in members:
        group.end(member, 0.0)
    return members


def test_a_transaction_of_fresh_units_takes_more_and_one_of_a_part_does_not() -> None:
    group = UnitGroup(PATIENCE)
    first, second = ended(group, 2)
    assert group.begin() == [first, second]
    (third,) = ended(group, 1)
    assert group.join() == [third]
    group.aborted({second: refused(RecordTooLargeException("large"))}, OF_THE_TRANSACTION, 0.0)
    (fourth,) = ended(group, 1)
    assert (group.begin(), group.join(), group.committed()) == ([first], [], [first])
    assert (group.begin(), group.join()) == ([second], [])
    assert [failed.member for failed in group.aborted({}, refused(RecordTooLargeException("large")), 0.0)] == [second]
    assert (group.begin(), group.committed()) == ([third], [third])
    assert group.begin() == [fourth]


def test_a_setback_is_of_the_unit_itself_or_of_the_transaction() -> None:
    """Another one's record is no reason for a unit that finds no transaction afterwards."""
    group = UnitGroup(PATIENCE)
    first, second = ended(group, 2)
    group.begin()
    large = refused(RecordTooLargeException("large"))
    group.aborted({second: large}, large, 0.0)
    assert (first.setback, second.setback) == (None, large)
    group.begin()
    group.aborted({}, OF_THE_TRANSACTION, 0.0)
    assert first.setback == OF_THE_TRANSACTION


def test_a_setback_may_be_that_of_any_unit_if_none_is_known_to_be_at_fault() -> None:
    group = UnitGroup(PATIENCE)
    members = ended(group, 2)
    group.begin()
    large = refused(RecordTooLargeException("large"))
    group.aborted({}, large, 0.0)
    assert [member.setback for member in members] == [large, large]


def test_a_unit_that_would_be_refused_again_fails_at_once() -> None:
    group = UnitGroup(PATIENCE)
    first, second, third = ended(group, 3)
    group.begin()
    error = refused(TopicAuthorizationException("secret"))
    assert group.aborted({second: error}, OF_THE_TRANSACTION, 0.0) == [(second, error)]
    assert group.begin() == [first, third]


def test_a_transient_failure_is_repeated_until_the_units_time_is_over() -> None:
    group = UnitGroup(PATIENCE)
    (member,) = ended(group, 1)
    for now in (0.0, 5.0, 9.0):
        assert group.begin() == [member]
        assert group.aborted({}, OF_THE_TRANSACTION, now) == []
    assert group.begin() == [member]
    assert group.aborted({}, OF_THE_TRANSACTION, PATIENCE) == [(member, OF_THE_TRANSACTION)]
    assert not group.busy()


def test_a_transaction_must_end_before_the_next_begins() -> None:
    group = UnitGroup(PATIENCE)
    ended(group, 1)
    group.begin()
    with pytest.raises(AssertionError, match="has not ended"):
        group.begin()


def test_a_late_record_fails_its_unit_and_the_time_of_all_others_starts_again() -> None:
    group = UnitGroup(PATIENCE)
    first, second, third = ended(group, 3)
    group.begin()
    group.join()
    behind = UnitMember()
    group.end(behind, 1.0)
    error = late()
    assert group.aborted({second: error}, error, PATIENCE) == [(second, error)]
    assert group.expire(PATIENCE + 1.5) == []
    assert (group.begin(), group.committed()) == ([first, third], [first, third])
    assert (group.begin(), group.committed()) == ([behind], [behind])


def test_a_late_record_of_a_unit_that_has_time_left_is_tried_alone() -> None:
    group = UnitGroup(PATIENCE)
    first, second = ended(group, 2)
    group.begin()
    assert group.aborted({second: late()}, late(), PATIENCE / 2) == []
    assert (group.begin(), group.committed()) == ([first], [first])
    assert group.begin() == [second]


def test_offsets_that_were_not_accepted_in_time_are_tried_alone_whatever_the_time() -> None:
    """They are sent together, so they name no unit."""
    group = UnitGroup(PATIENCE)
    first, second = ended(group, 2)
    group.begin()
    offsets = refused(TimeoutException("offsets"))
    assert group.aborted({first: offsets, second: offsets}, offsets, PATIENCE) == []
    assert (group.begin(), group.committed()) == ([first], [first])
    assert group.expire(PATIENCE) == []
    assert group.begin() == [second]


def test_the_time_of_a_unit_does_not_start_again_for_ever() -> None:
    group = UnitGroup(PATIENCE)
    members = ended(group, 8)
    group.begin()
    offsets = refused(TimeoutException("offsets"))
    group.aborted(dict.fromkeys(members, offsets), offsets, 9.0)
    for number, now in enumerate((18.0, 27.0, 29.0)):
        assert group.expire(now - 9.0) == []
        assert group.begin() == [members[number]]
        group.aborted({members[number]: offsets}, offsets, now)
    assert group.expire(MOST_TIMES * PATIENCE) == members[3:]
