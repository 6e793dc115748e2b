from __future__ import annotations

import re
from pathlib import Path

import pytest

from aioproducer.errors import IllegalStateException
from aioproducer.producer.transactions.state import TRANSITIONS, TransactionState, check_transition

DIAGRAM = Path(__file__).parents[3] / "docs" / "transactions.md"


def test_every_state_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(TransactionState)


@pytest.mark.parametrize("now", TransactionState)
@pytest.mark.parametrize("then", TransactionState)
def test_only_what_the_table_has_may_follow(now: TransactionState, then: TransactionState) -> None:
    if then in TRANSITIONS[now]:
        check_transition(now, then)
    else:
        with pytest.raises(IllegalStateException, match=f"from {now.name} to {then.name}"):
            check_transition(now, then)


def test_every_state_can_be_reached_and_fatal_is_the_end() -> None:
    reached = {TransactionState.UNINITIALIZED}
    while (more := reached.union(*(TRANSITIONS[state] for state in reached))) != reached:
        reached = more
    assert reached == set(TransactionState)
    assert not TRANSITIONS[TransactionState.FATAL_ERROR]


def test_the_diagram_is_the_table() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+)$", DIAGRAM.read_text(), re.MULTILINE)
    table = [(now.name, then.name) for now, others in TRANSITIONS.items() for then in others if then is not now]
    assert sorted(drawn) == sorted(table)
