"""The simulation finds each planted bug: its invariants can fail."""

from __future__ import annotations

import json
import logging

import pytest

from aioproducer.testing.simulation import play
from tests.support.compiled import interpreted_only
from tests.testing.simulation.finders import FILE, found_by, scenarios
from tests.testing.simulation.planted_bugs import BUGS

log = logging.getLogger(__name__)

FINDERS: dict[str, int] = json.loads(FILE.read_text(encoding="utf-8"))


@interpreted_only
@pytest.mark.once
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    bug = BUGS[name]
    runs = (found_by(bug, scenario) for scenario in scenarios(bug, FINDERS.get(name)))
    found = next(filter(None, runs), None)
    assert found is not None, "no seed has found it"
    log.info("%s is found by seed %d", name, found.scenario.seed)
    misplanted = [
        violation for violation in found.violations if "TypeError" in violation or "AttributeError" in violation
    ]
    assert not misplanted, "the code has changed, and the bug no longer fits it"
    assert play(found.scenario).ok, "it is not the bug that was found"


def test_the_finders_are_those_of_the_bugs() -> None:
    assert FINDERS.keys() == BUGS.keys()
