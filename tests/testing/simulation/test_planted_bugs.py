"""The simulation finds each planted bug: its invariants can fail."""

from __future__ import annotations

import logging

import pytest

from aioproducer.testing.simulation import draw, play
from tests.support.compiled import interpreted_only
from tests.testing.simulation import planted_transaction_bugs as planted_transaction_bugs
from tests.testing.simulation import planted_unit_bugs as planted_unit_bugs
from tests.testing.simulation.planted_bugs import BUGS

log = logging.getLogger(__name__)

SEEDS = 100
"""One of this many seeds finds each bug in its circumstances; most are found by one of the first ten."""


@interpreted_only
@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    bug.plant(monkeypatch)
    scenarios = filter(None, map(bug.shows, map(draw, range(SEEDS))))
    found = next((report for report in map(play, scenarios) if not report.ok), None)
    assert found is not None, "no seed has found it"
    log.info("%s is found by seed %d", name, found.scenario.seed)
    misplanted = [
        violation for violation in found.violations if "TypeError" in violation or "AttributeError" in violation
    ]
    assert not misplanted, "the code has changed, and the bug no longer fits it"
    monkeypatch.undo()
    assert play(found.scenario).ok, "it is not the bug that was found"
