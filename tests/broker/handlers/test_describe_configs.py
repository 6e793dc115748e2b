from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.configs.broker_config import BROKER_CONFIGS
from aioproducer.broker.configs.dynamic_configs import DYNAMIC_BROKER_CONFIGS
from aioproducer.broker.configs.topic_config import TOPIC_CONFIGS, TOPIC_CONFIGS_WITHOUT_EFFECT
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

from . import Connect, RawClient

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
WINDOW = "producer.state.batches.to.retain"


async def describe(client: RawClient, kind: int, name: str, *keys: str, version: int = 4, **more: Any) -> Any:
    resource = DescribeConfigsResource(kind, name, list(keys) or None)
    (result,) = (await client.request(DescribeConfigsRequest([resource], **more), version)).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


@pytest.mark.parametrize("version", range(1, 5))
async def test_configs_of_a_topic_are_described_in_every_version(
    cluster: EmbeddedCluster, client: RawClient, version: int
) -> None:
    cluster.create_topic("t", configs={"cleanup.policy": "compact", WINDOW: 20})
    result = await describe(client, TOPIC, "t", version=version, include_synonyms=True)
    configs = {config.name: config for config in result.configs}
    assert set(configs) == set(TOPIC_CONFIGS)
    assert not any(config.read_only or config.is_sensitive for config in result.configs)
    window = configs[WINDOW]
    assert (window.value, window.config_source) == ("20", 1)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in window.synonyms] == [
        (WINDOW, "20", 1),
        (f"log.{WINDOW}", "5", 5),
    ]
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].config_source) == ("compact", 1)
    assert (configs["preallocate"].value, configs["preallocate"].config_source) == ("false", 5)
    if version >= 3:
        types = [configs[name].config_type for name in ("preallocate", "compression.type", WINDOW, "retention.ms")]
        assert types == [1, 2, 3, 5]
        assert [configs[name].config_type for name in ("min.cleanable.dirty.ratio", "cleanup.policy")] == [6, 7]


async def test_synonyms_and_documentation_only_on_request(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    result = await describe(client, TOPIC, "t")
    assert all(config.synonyms == [] and config.documentation is None for config in result.configs)
    result = await describe(client, TOPIC, "t", include_documentation=True)
    without_effect = {config.name for config in result.configs if config.documentation.startswith("Without effect")}
    assert without_effect == TOPIC_CONFIGS_WITHOUT_EFFECT


async def test_only_the_requested_configs_are_described(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t")
    result = await describe(client, TOPIC, "t", "retention.ms", "no.such")
    assert [config.name for config in result.configs] == ["retention.ms"]


@pytest.mark.parametrize("cluster", [{"nodes": 2, "configs": {"num.partitions": 3}}], indirect=True)
async def test_a_node_describes_its_own_configs(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.alter_broker_configs({"log.retention.bytes": 1000}, node_id=0)
    cluster.alter_broker_configs({"log.retention.bytes": 2000, "message.max.bytes": 7000})
    result = await describe(client, BROKER, "0", include_synonyms=True)
    configs = {config.name: (config.value, config.config_source, config.read_only) for config in result.configs}
    assert set(configs) == set(BROKER_CONFIGS)
    assert configs["num.partitions"] == ("3", 4, True)
    assert configs["log.retention.bytes"] == ("1000", 2, False)
    assert configs["message.max.bytes"] == ("7000", 3, False)
    assert {name for name in configs if not configs[name][2]} == DYNAMIC_BROKER_CONFIGS

    result = await describe(client, BROKER, "")
    configs = {config.name: (config.value, config.config_source, config.read_only) for config in result.configs}
    assert configs == {"log.retention.bytes": ("2000", 3, False), "message.max.bytes": ("7000", 3, False)}


@pytest.mark.parametrize("cluster", [{"nodes": 2, "old_nodes": [1]}], indirect=True)
async def test_an_old_node_knows_the_window_only_from_the_topic(cluster: EmbeddedCluster, connect: Connect) -> None:
    old = await connect(1)
    cluster.create_topic("t")
    assert (await describe(old, TOPIC, "t", WINDOW)).configs == []
    assert (await describe(old, BROKER, "1", f"log.{WINDOW}")).configs == []
    cluster.alter_topic_configs("t", {WINDOW: 20})
    (config,) = (await describe(old, TOPIC, "t", WINDOW)).configs
    assert (config.value, config.config_source) == ("20", 1)


async def test_no_logger_has_a_described_level(client: RawClient) -> None:
    result = await describe(client, BROKER_LOGGER, "0")
    assert (result.error_code, result.configs) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "not-there", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "no/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "1", ErrorCode.INVALID_REQUEST),
        (BROKER, "zero", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "1", ErrorCode.INVALID_REQUEST),
        (32, "", ErrorCode.INVALID_REQUEST),
        (0, "", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_resources_without_configs(client: RawClient, kind: int, name: str, code: ErrorCode) -> None:
    result = await describe(client, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message
