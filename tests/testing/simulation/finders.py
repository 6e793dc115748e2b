"""Finds the seeds of ``finders.json``: for each planted bug one that finds it soon.

    python -m tests.testing.simulation.finders    # eight minutes

The tests try this seed first, because trying seeds in turn until one finds a bug takes minutes. After a change of the
producer or the simulation another seed may find it: then the tests take longer, and fail only if none of SEEDS does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from aioproducer.testing.simulation import Report, Scenario, draw, play
from tests.testing.simulation import planted_transaction_bugs as planted_transaction_bugs
from tests.testing.simulation import planted_unit_bugs as planted_unit_bugs
from tests.testing.simulation.planted_bugs import BUGS, Bug

SEEDS = 100
"""One of this many seeds finds each bug in its circumstances; most are found by one of the first ten."""

COMPARED = 3
"""Seeds that find a bug, of which the one whose run is the shortest is kept."""

FILE = Path(__file__).with_name("finders.json")


def scenarios(bug: Bug, first: int | None = None) -> Iterator[Scenario]:
    """Those that may show the bug, that of the seed ``first`` before the others."""
    seeds = range(SEEDS) if first is None else dict.fromkeys([first, *range(SEEDS)])
    return filter(None, map(bug.shows, map(draw, seeds)))


def found_by(bug: Bug, scenario: Scenario) -> Report | None:
    """The report of a run with the bug planted; None if it is not found."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        bug.plant(monkeypatch)
        report = play(scenario)
    return None if report.ok else report


def _soonest(bug: Bug) -> int | None:
    took: dict[int, float] = {}
    for scenario in scenarios(bug):
        began = time.process_time()
        if found_by(bug, scenario) is not None:
            took[scenario.seed] = time.process_time() - began
            if len(took) == COMPARED:
                break
    return min(took, key=lambda seed: took[seed], default=None)


def main() -> None:
    finders = {name: _soonest(bug) for name, bug in sorted(BUGS.items())}
    FILE.write_text(json.dumps(finders, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
