"""The errors that may end an application's producer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aioproducer.testing.simulation import draw, play
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.users.application import _Living
from tests.testing.simulation.circumstances import of_the_second_protocol, only, undisturbed


@pytest.mark.simulation
def test_a_producer_may_end_with_a_transaction_that_was_open_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    outlived = _Living._outlived
    found: list[bool] = []

    def watched(self: _Living) -> bool:
        found.append(outlived(self))
        return found[-1]

    monkeypatch.setattr(_Living, "_outlived", watched)
    for scenario in filter(None, map(only(undisturbed(of_the_second_protocol), windows=0.1), map(draw, range(60)))):
        (plan,) = scenario.applications
        work = replace(plan.work, records=1)
        hasty = replace(plan, timeout_ms=100, by_hand=1.0, aborts=0.0, offsets=1.0, work=work)
        report = play(replace(scenario, applications=[hasty], conditions=Conditions(latency=0.03)))
        assert report.ok, report.violations
    assert found
    assert all(found)
