from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from aioproducer import KafkaProducer
from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults.faults import KINDS
from aioproducer.testing.simulation.scenario import Ending, Promise, Scenario, stream
from aioproducer.testing.simulation.work_plan import WorkPlan

SCENARIOS = [draw(seed) for seed in range(500)]


def test_a_seed_is_one_scenario() -> None:
    assert [draw(seed) for seed in range(50)] == SCENARIOS[:50]
    assert len({"\n".join(scenario.describe()) for scenario in SCENARIOS}) == len(SCENARIOS)


@pytest.mark.parametrize("kinds", [(), ("reset",), ("late", "codes", "leaders")])
def test_leaving_kinds_of_faults_out_changes_nothing_else(kinds: tuple[str, ...]) -> None:
    for scenario in SCENARIOS[:100]:
        fewer = draw(scenario.seed, kinds)
        assert fewer.rates == {kind: rate for kind, rate in scenario.rates.items() if kind in kinds}
        assert replace(fewer, rates=scenario.rates) == scenario


def test_every_config_is_one_that_a_producer_takes() -> None:
    for scenario in SCENARIOS:
        config = KafkaProducer(bootstrap_servers="kafka:1", **scenario.config).config
        assert config.enable_idempotence == (scenario.promise is Promise.EXACTLY_ONCE)


def test_everything_there_is_is_drawn_now_and_then() -> None:
    kinds = Counter(kind for scenario in SCENARIOS for kind in scenario.rates)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) > 20
    assert {scenario.ending for scenario in SCENARIOS} == set(Ending)
    assert {scenario.promise for scenario in SCENARIOS} == set(Promise)
    expected: dict[str, set[object]] = {
        "batch_size": {0},
        "linger_ms": {0, 100},
        "max_in_flight_requests_per_connection": {1, 5, 20},
        "acks": {None, "0", "1", "all"},
        "retries": {None, 0, 1},
    }
    for name, values in expected.items():
        assert values <= {scenario.config.get(name) for scenario in SCENARIOS}
    assert {scenario.producers for scenario in SCENARIOS if not scenario.applications} == {1, 2}
    assert {len(scenario.applications) for scenario in SCENARIOS} == {0, 1, 2, 3}
    applications = [scenario for scenario in SCENARIOS if scenario.applications]
    assert {scenario.transaction_version for scenario in applications} == {0, 1, 2}
    assert any(scenario.calm for scenario in applications)
    assert 10 < sum(scenario.calm for scenario in SCENARIOS) < 100
    assert 10 < sum(scenario.log_append_time for scenario in SCENARIOS) < 250


def test_calm_is_without_faults() -> None:
    assert all(scenario.calm == (not scenario.rates) for scenario in SCENARIOS)
    assert not any(draw(scenario.seed, ()).calm for scenario in SCENARIOS if not scenario.calm)


def test_rates_may_be_given() -> None:
    for scenario in SCENARIOS[:100]:
        given = draw(scenario.seed, ("reset", "late"), rates={"reset": 0.5})
        late = {kind: rate for kind, rate in scenario.rates.items() if kind == "late"}
        assert given.rates == late | {"reset": 0.5}
        assert not given.calm


def test_impossible_faults_are_left_out_though_requested() -> None:
    given = [draw(scenario.seed, (), rates={"recreate": 0.5}) for scenario in SCENARIOS[:100]]
    recreated = [scenario for scenario in given if scenario.rates]
    assert not any(scenario.release for scenario in recreated)
    assert len(recreated) > 20


def test_producers_that_may_be_forgotten_rest_for_so_long() -> None:
    for seed in range(100):
        before, after = draw(seed, ()), draw(seed, (), rates={"expiry": 0.5})
        if "expiry" in after.rates and "expiry" not in SCENARIOS[seed].rates:
            assert not any(plan.rests for plan in _plans(before))
            assert all(plan.rests for plan in _plans(after))
            assert len({plan.old for plan in _plans(after)}) == 1
            assert after.faults_until == before.faults_until + 2 * after.expiry
            assert after.expiry > 2 * after.milliseconds("delivery_timeout_ms")


def _plans(scenario: Scenario) -> list[WorkPlan]:
    return scenario.work or [application.work for application in scenario.applications]


def test_ample_is_drawn_and_may_be_requested() -> None:
    assert 20 < sum(scenario.ample for scenario in SCENARIOS) < 100
    for scenario in (draw(seed, ample=True) for seed in range(100)):
        assert scenario.ample
        assert scenario.ending is Ending.AFTER_ALL
        assert not scenario.applications
        assert scenario.promise is not Promise.AT_MOST_ONCE
        config = KafkaProducer(bootstrap_servers="kafka:1", **scenario.config).config
        assert config.retries == 2**31 - 1
        assert config.enable_idempotence == (scenario.promise is Promise.EXACTLY_ONCE)


def test_milliseconds_are_read_as_seconds() -> None:
    scenario = replace(SCENARIOS[0], config={"linger_ms": 250})
    assert scenario.milliseconds("linger_ms") == 0.25


def test_randomness_is_one_stream_for_each_purpose() -> None:
    assert stream(1, "loop").random() == stream(1, "loop").random()
    assert len({stream(seed, what).random() for seed in range(3) for what in ("loop", "network")}) == 6
