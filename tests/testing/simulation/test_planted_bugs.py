"""The simulation finds each of the bugs that it is there for: its invariants can fail."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from aioproducer.testing.simulation import draw, simulate
from tests.support.compiled import interpreted_only
from tests.testing.simulation.planted_bugs import BUGS
from tests.testing.simulation.planted_transaction_bugs import TRANSACTION_BUGS

SEEDS = 1000
"""Within so many seeds, from the first on, each is found; most within ten."""


def check_found(seeds: Iterable[int]) -> None:
    found = next((report for report in map(simulate, seeds) if not report.ok), None)
    assert found is not None, "no seed has found it"
    misplanted = [
        violation for violation in found.violations if "TypeError" in violation or "AttributeError" in violation
    ]
    assert not misplanted, "the code has changed, and the bug no longer fits it"


@interpreted_only
@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    check_found(range(SEEDS))


@interpreted_only
@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", TRANSACTION_BUGS)
def test_a_planted_bug_of_transactions_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    TRANSACTION_BUGS[bug](monkeypatch)
    check_found(seed for seed in range(SEEDS) if draw(seed).applications)
