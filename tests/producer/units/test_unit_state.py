from __future__ import annotations

import re
from pathlib import Path

import pytest

from aioproducer.errors import IllegalStateException
from aioproducer.producer.units.unit_state import TRANSITIONS, UnitState, check_transition

DIAGRAM = Path(__file__).parents[3] / "docs" / "units.md"


@pytest.mark.parametrize("now", UnitState)
@pytest.mark.parametrize("then", UnitState)
def test_only_what_the_table_has_may_follow(now: UnitState, then: UnitState) -> None:
    if then in TRANSITIONS[now]:
        check_transition(now, then)
    else:
        with pytest.raises(IllegalStateException, match=f"from {now.name} to {then.name}"):
            check_transition(now, then)


def test_every_state_is_in_the_table_and_can_be_reached() -> None:
    assert set(TRANSITIONS) == set(UnitState)
    reached = {UnitState.OPEN}
    while (more := reached.union(*(TRANSITIONS[state] for state in reached))) != reached:
        reached = more
    assert reached == set(UnitState)


def test_the_diagram_is_the_table() -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+)$", DIAGRAM.read_text(encoding="utf-8"), re.MULTILINE)
    table = [(now.name, then.name) for now, others in TRANSITIONS.items() for then in others]
    assert sorted(drawn) == sorted(table)
