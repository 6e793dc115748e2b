"""The simulation finds each of the bugs that it is there for: its invariants can fail."""

from __future__ import annotations

import pytest

from aioproducer.testing.simulation import simulate
from tests.testing.simulation.planted_bugs import BUGS

SEEDS = 1000
"""Within so many seeds, from the first on, each is found; most within ten."""


@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    found = next((report for report in map(simulate, range(SEEDS)) if not report.ok), None)
    assert found is not None, f"{SEEDS} seeds have not found it"
    misplanted = [
        violation for violation in found.violations if "TypeError" in violation or "AttributeError" in violation
    ]
    assert not misplanted, "the code has changed, and the bug no longer fits it"
