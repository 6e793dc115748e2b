from __future__ import annotations

from pathlib import Path

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs import resource_configs
from aioproducer.broker.configs.config_changes import ConfigChange, OpType
from aioproducer.broker.configs.resource_configs import Owner, ResourceConfigs
from aioproducer.errors import (
    InvalidConfigurationException,
    InvalidRequestException,
    KafkaError,
    PolicyViolationException,
)

SESSION, INTERVAL = "consumer.session.timeout.ms", "interval.ms"


def put(configs: ResourceConfigs, owner: Owner, name: str, config: str, value: str | None) -> None:
    operation = OpType.DELETE if value is None else OpType.SET
    configs.alter(owner, name, [ConfigChange(config, operation, value)], validate_only=False)


@pytest.mark.parametrize(
    ("owner", "name", "config", "value", "error"),
    [
        (Owner.GROUP, "g", SESSION, "1", InvalidConfigurationException),
        (Owner.GROUP, "g", "no.such", "1", InvalidConfigurationException),
        (Owner.GROUP, "", SESSION, "50000", InvalidRequestException),
        (Owner.CLIENT_METRICS, "m", INTERVAL, "99", InvalidRequestException),
        (Owner.CLIENT_METRICS, "m", INTERVAL, "x", InvalidConfigurationException),
        (Owner.CLIENT_METRICS, "m", "match", "client_id=(", InvalidConfigurationException),
        (Owner.CLIENT_METRICS, "m", "match", "client_id=" + "(" * 900, InvalidConfigurationException),
        (Owner.CLIENT_METRICS, "m", "match", "client_id=a{4294967296}", InvalidConfigurationException),
        (Owner.CLIENT_METRICS, "m", "match", "client_id=" + "a" * 1000, InvalidConfigurationException),
        (Owner.CLIENT_METRICS, "m", "no.such", "1", InvalidRequestException),
    ],
)
def test_an_impossible_config_of_a_resource_is_refused(
    owner: Owner, name: str, config: str, value: str, error: type[KafkaError]
) -> None:
    configs = ResourceConfigs()
    with pytest.raises(error):
        put(configs, owner, name, config, value)
    assert configs.of(owner, "g") == configs.of(owner, "m") == {}


def test_a_bracket_within_brackets_is_a_character() -> None:
    configs = ResourceConfigs()
    put(configs, Owner.CLIENT_METRICS, "m", "match", "client_id=[[a]")
    assert configs.of(Owner.CLIENT_METRICS, "m") == {"match": "client_id=[[a]"}


def test_there_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_configs, "MAX_RESOURCES", 1)
    configs = ResourceConfigs()
    put(configs, Owner.GROUP, "g", SESSION, "50000")
    put(configs, Owner.GROUP, "g", SESSION, "55000")
    with pytest.raises(PolicyViolationException):
        put(configs, Owner.CLIENT_METRICS, "m", INTERVAL, "1000")
    put(configs, Owner.GROUP, "g", SESSION, None)
    put(configs, Owner.CLIENT_METRICS, "m", INTERVAL, "1000")


def test_there_are_not_too_many_subscriptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_configs, "MAX_SUBSCRIPTIONS", 1)
    configs = ResourceConfigs()
    put(configs, Owner.GROUP, "g", SESSION, "50000")
    put(configs, Owner.CLIENT_METRICS, "m", INTERVAL, "1000")
    put(configs, Owner.CLIENT_METRICS, "m", "metrics", "a")
    with pytest.raises(PolicyViolationException):
        put(configs, Owner.CLIENT_METRICS, "n", INTERVAL, "1000")
    assert configs.names(Owner.CLIENT_METRICS) == ["m"]


@pytest.mark.parametrize("match", ["client_id", "client_id=", "client_id=a=b", "client_id=(?=a)", "nobody=a"])
def test_selectors_that_make_no_sense(match: str) -> None:
    with pytest.raises(InvalidConfigurationException):
        put(ResourceConfigs(), Owner.CLIENT_METRICS, "m", "match", match)


async def test_resource_configs_are_kept_in_the_data_directory(tmp_path: Path) -> None:
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        configs = cluster._state.resource_configs
        put(configs, Owner.GROUP, "g", SESSION, "50000")
        put(configs, Owner.GROUP, "gone", SESSION, "50000")
        put(configs, Owner.GROUP, "gone", SESSION, None)
        put(configs, Owner.CLIENT_METRICS, "m", "metrics", "a,b")
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        configs = cluster._state.resource_configs
        assert configs.of(Owner.GROUP, "g") == {SESSION: "50000"}
        assert configs.of(Owner.GROUP, "gone") == {}
        assert configs.of(Owner.CLIENT_METRICS, "m") == {"metrics": "a,b"}
