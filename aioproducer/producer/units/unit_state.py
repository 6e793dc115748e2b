"""The states of a unit and the transitions between them.

Rules only: every change that is not in the table is refused.
"""

from __future__ import annotations

from enum import Enum

from aioproducer.errors import IllegalStateException


class UnitState(Enum):
    """Where a unit is on its way."""

    OPEN = "its block is running"
    WAITING = "its block has ended, and it waits for a transaction"
    JOINED = "it is in a transaction that has not ended"
    COMMITTED = "it is committed"
    FAILED = "it has failed"
    DROPPED = "its block raised, or was closed: nothing of it was sent"


_S = UnitState
TRANSITIONS: dict[UnitState, frozenset[UnitState]] = {
    _S.OPEN: frozenset({_S.WAITING, _S.COMMITTED, _S.DROPPED}),
    _S.WAITING: frozenset({_S.JOINED, _S.FAILED}),
    _S.JOINED: frozenset({_S.COMMITTED, _S.WAITING, _S.FAILED}),
    _S.COMMITTED: frozenset(),
    _S.FAILED: frozenset(),
    _S.DROPPED: frozenset(),
}
"""Each state and its possible successors. OPEN becomes COMMITTED if the unit is empty. JOINED becomes WAITING if the
transaction was aborted and the unit is committed anew. The diagram in docs/units.md is drawn from this table."""


def check_transition(now: UnitState, then: UnitState) -> None:
    """Raises IllegalStateException unless ``then`` may follow ``now``."""
    if then not in TRANSITIONS[now]:
        raise IllegalStateException(f"a unit cannot go from {now.name} to {then.name}: {now.value}")
