from __future__ import annotations

from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

from . import RawClient

TOPIC, BROKER = 2, 4


async def replace(client: RawClient, kind: int, name: str, version: int = 2, **configs: str | None) -> Any:
    wanted = [AlterableConfig(config.replace("_", "."), value) for config, value in configs.items()]
    request = AlterConfigsRequest([AlterConfigsResource(kind, name, wanted)])
    (response,) = (await client.request(request, version)).responses
    return ErrorCode(response.error_code)


@pytest.mark.parametrize("version", range(3))
async def test_configs_that_are_left_out_are_reset(cluster: EmbeddedCluster, client: RawClient, version: int) -> None:
    cluster.create_topic("t", configs={"retention.ms": 1, "max.message.bytes": 5000})
    assert await replace(client, TOPIC, "t", version, max_message_bytes="6000") is ErrorCode.NONE
    assert cluster.topic("t").configs == {"max.message.bytes": "6000"}

    cluster.alter_broker_configs({"log.retention.bytes": 1000})
    assert await replace(client, BROKER, "", version, message_max_bytes="7000") is ErrorCode.NONE
    cluster.create_topic("u")
    config = cluster.topic("u").config
    assert (config.max_message_bytes, config.retention_bytes) == (7000, -1)


async def test_an_invalid_config_changes_nothing(cluster: EmbeddedCluster, client: RawClient) -> None:
    cluster.create_topic("t", configs={"retention.ms": 1})
    assert await replace(client, TOPIC, "t", max_message_bytes="-1") is ErrorCode.INVALID_CONFIG
    assert await replace(client, TOPIC, "t", max_message_bytes=None) is ErrorCode.INVALID_REQUEST
    assert await replace(client, TOPIC, "u", max_message_bytes="1") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await replace(client, BROKER, "1", message_max_bytes="1") is ErrorCode.INVALID_REQUEST
    assert cluster.topic("t").configs == {"retention.ms": "1"}
