from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from aioproducer import KafkaProducer
from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults import KINDS
from aioproducer.testing.simulation.scenario import Ending, Promise, stream

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


def test_milliseconds_are_told_as_seconds() -> None:
    scenario = replace(SCENARIOS[0], config={"linger_ms": 250})
    assert scenario.milliseconds("linger_ms") == 0.25


def test_randomness_is_one_stream_for_each_purpose() -> None:
    assert stream(1, "loop").random() == stream(1, "loop").random()
    assert len({stream(seed, what).random() for seed in range(3) for what in ("loop", "network")}) == 6
