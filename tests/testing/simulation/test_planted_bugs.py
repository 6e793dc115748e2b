"""The simulation finds each of the bugs that it is there for: its invariants can fail."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain

import pytest

from aioproducer.testing.simulation import draw, simulate
from aioproducer.testing.simulation.scenario import Scenario
from tests.support.compiled import interpreted_only
from tests.testing.simulation.planted_bugs import BUGS
from tests.testing.simulation.planted_transaction_bugs import TRANSACTION_BUGS

log = logging.getLogger(__name__)

SEEDS = 1000
"""Within so many seeds, from the first on, each is found; most within ten."""

KNOWN = {
    "an_unknown_outcome_is_sent_again_under_another_epoch": (428,),
    "a_deposed_leader_is_believed_not_to_have_appended": (87, 236),
    "retries_go_to_the_back": (188,),
    "a_partition_that_comes_back_begins_anew": (4432,),
    "the_window_of_five_is_ignored": (2621,),
    "a_gap_does_not_wait_for_batches_under_way": (188,),
    "the_epoch_that_the_end_of_a_transaction_brings_is_ignored": (440,),
    "a_coordinator_is_never_looked_for_again": (63,),
}
"""Seeds that found a bug when it was last looked for, where no early one does: they are tried first."""


def is_crowded(scenario: Scenario) -> bool:
    """Everything is for one partition, in many requests at a time: there rare bugs show first."""
    return len(scenario.topics) == 1 and scenario.config["max_in_flight_requests_per_connection"] > 5


def may_lose_partitions(scenario: Scenario) -> bool:
    """Brokers may not have heard of a new partition, and tell no topic ids."""
    return "growth" in scenario.rates and bool(scenario.newest_versions) and not scenario.applications


LIKELY = {"a_partition_that_comes_back_begins_anew": may_lose_partitions}
"""Bugs that show under circumstances which are rare: of many more seeds, those that have them are tried."""


def seeds_for(bug: str) -> Iterable[int]:
    if bug in LIKELY:
        return (seed for seed in range(20 * SEEDS) if LIKELY[bug](draw(seed)))
    return sorted(range(SEEDS), key=lambda seed: bug in KNOWN and not is_crowded(draw(seed)))


def check_found(bug: str, seeds: Iterable[int]) -> None:
    found = next((report for report in map(simulate, chain(KNOWN.get(bug, ()), seeds)) if not report.ok), None)
    assert found is not None, "no seed has found it"
    log.info("%s is found by seed %d", bug, found.scenario.seed)
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
    check_found(bug, seeds_for(bug))


@interpreted_only
@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", TRANSACTION_BUGS)
def test_a_planted_bug_of_transactions_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    TRANSACTION_BUGS[bug](monkeypatch)
    check_found(bug, (seed for seed in range(SEEDS) if draw(seed).applications))
