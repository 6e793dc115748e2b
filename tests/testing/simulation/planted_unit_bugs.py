"""Bugs of units that share transactions. Tests plant each of them, and the simulation must find it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from aioproducer.errors import DeliveryError
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.producer.units.unit_committer import UnitCommitter
from aioproducer.producer.units.unit_group import Failed, UnitGroup
from aioproducer.producer.units.unit_member import UnitMember
from aioproducer.producer.units.unit_state import UnitState

from .circumstances import (
    of_doomed_units,
    of_impatient_units,
    of_interrupted_units,
    of_poisoned_units,
    of_units,
    only,
    undisturbed,
)
from .planted_bugs import bug, wrap


@bug(undisturbed(of_poisoned_units))
def a_poisoned_unit_takes_all_others_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def aborted(self: UnitGroup, own: Any, shared: DeliveryError, now: float) -> list[Failed]:
        return [Failed(member, shared) for member in self.lost()]

    monkeypatch.setattr(UnitGroup, "aborted", aborted)


@bug(undisturbed(of_doomed_units))
def the_time_of_a_unit_is_used_up_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnitGroup, "start_again", lambda self, now: None)


@bug(only(of_impatient_units, outages=1.0))
def a_unit_fails_with_the_error_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def aborted(original: Any, self: UnitGroup, own: Any, shared: DeliveryError, now: float) -> list[Failed]:
        failed: list[Failed] = original(self, own, shared, now)
        for member in self._in_order():
            if member.setback is None and member.deliveries:
                member.setback = shared
        return failed

    wrap(monkeypatch, UnitGroup, "aborted", aborted)


@bug(only(of_poisoned_units))
def units_are_reported_before_their_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def commit(original: Any, self: UnitCommitter) -> None:
        for member in self._group.committed():
            self._settled(member, None)
        await original(self)

    wrap(monkeypatch, UnitCommitter, "_commit", commit)


@bug(only(of_poisoned_units))
def a_record_of_a_unit_that_is_committed_anew_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def put(original: Any, self: UnitCommitter, members: Iterable[UnitMember]) -> None:
        members = list(members)
        for member in members:
            if member.deliveries and len(member.records) > 1:
                member.records.pop()
        await original(self, members)

    wrap(monkeypatch, UnitCommitter, "_put", put)


@bug(only(of_interrupted_units, late=0.1))
def the_end_of_a_commit_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        TransactionManager, "may_be_committed", property(lambda self: False, lambda self, value: None), raising=False
    )


@bug(only(of_units))
def a_unit_in_a_transaction_is_taken_out_by_a_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    def withdraw(original: Any, self: UnitGroup, member: UnitMember) -> bool:
        if member.state is UnitState.JOINED:
            self.joined.remove(member)
            member.become(UnitState.FAILED)
            return True
        taken: bool = original(self, member)
        return taken

    wrap(monkeypatch, UnitGroup, "withdraw", withdraw)


@bug(only(of_poisoned_units))
def a_unit_is_committed_again_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def aborted(original: Any, self: UnitGroup, *given: Any) -> list[Failed]:
        failed: list[Failed] = original(self, *given)
        for part in self._again:
            part.extend(part[:1])
            self.waiting += 1
        return failed

    def join(self: UnitGroup, members: list[UnitMember]) -> list[UnitMember]:
        for member in dict.fromkeys(members):
            member.become(UnitState.JOINED)
        self.waiting -= len(members)
        self.joined += dict.fromkeys(members)
        return members

    wrap(monkeypatch, UnitGroup, "aborted", aborted)
    monkeypatch.setattr(UnitGroup, "_join", join)
