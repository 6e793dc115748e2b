from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioproducer.admin import Append, ConfigResource, ConfigSource, KafkaAdmin, Subtract
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import (
    IllegalArgumentException,
    InvalidConfigurationException,
    InvalidRequestException,
    UnknownTopicOrPartitionException,
)

WINDOW = "producer.state.batches.to.retain"
T = ConfigResource.topic("t")


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(nodes=2) as cluster:
        cluster.create_topic("t")
        yield cluster


@pytest.fixture
async def admin(cluster: EmbeddedCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        yield admin


async def test_a_topics_configs(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    await admin.alter_configs(T, {WINDOW: "20", "cleanup.policy": Append("compact")})
    configs = await admin.describe_configs(T)
    window = configs[WINDOW]
    assert (window.value, window.source, window.is_default) == ("20", ConfigSource.DYNAMIC_TOPIC_CONFIG, False)
    assert [(one.name, one.value, one.source.name) for one in window.synonyms] == [
        (WINDOW, "20", "DYNAMIC_TOPIC_CONFIG"),
        (f"log.{WINDOW}", "5", "DEFAULT_CONFIG"),
    ]
    assert configs["cleanup.policy"].value == "delete,compact"
    assert configs["retention.ms"].is_default
    await admin.alter_configs(T, {WINDOW: None, "cleanup.policy": Subtract("delete")})
    assert cluster.topic("t").configs == {"cleanup.policy": "compact"}


async def test_each_broker_gets_the_request_for_its_own_configs(admin: KafkaAdmin) -> None:
    resources = [ConfigResource.broker(1), ConfigResource.broker(0), ConfigResource.all_brokers(), T]
    values = ["1000", "2000", "3000"]
    changes = {resource: {"log.retention.bytes": value} for resource, value in zip(resources[:3], values, strict=True)}
    assert await admin.alter_all_configs(changes) == dict.fromkeys(resources[:3])
    described = await admin.describe_all_configs(resources)
    assert list(described) == resources
    found = []
    for configs in described.values():
        assert isinstance(configs, dict)
        found += [entry.value for name, entry in configs.items() if name in ("log.retention.bytes", "retention.bytes")]
    assert found[:3] == values
    assert found[3] in values[:2], "from whichever broker answered"


async def test_only_validate(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    await admin.alter_configs(T, {WINDOW: "20"}, validate_only=True)
    assert cluster.topic("t").configs == {}


async def test_errors_name_the_resource_and_hide_no_other(admin: KafkaAdmin) -> None:
    with pytest.raises(InvalidConfigurationException, match=r"topic 't': .* must be at least 5"):
        await admin.alter_configs(T, {WINDOW: "4"})
    with pytest.raises(UnknownTopicOrPartitionException, match="nosuch"):
        await admin.describe_configs(ConfigResource.topic("nosuch"))
    with pytest.raises(InvalidRequestException, match=r"num\.partitions"):
        await admin.alter_configs(ConfigResource.broker(1), {"num.partitions": "3"})
    nosuch = ConfigResource.topic("nosuch")
    results = await admin.alter_all_configs({nosuch: {WINDOW: "9"}, T: {WINDOW: "9"}})
    assert isinstance(results[nosuch], UnknownTopicOrPartitionException)
    assert results[T] is None


@pytest.mark.parametrize("change", [3000, Append(3000), Subtract(b"compact")])  # type: ignore[arg-type]
async def test_a_value_that_is_no_text_is_refused_and_not_shown(admin: KafkaAdmin, change: Any) -> None:
    kind = "bytes" if isinstance(change, Subtract) else "int"
    with pytest.raises(
        IllegalArgumentException, match=f"config 'max.message.bytes' of topic 't' is of type {kind}; it must be a text"
    ) as raised:
        await admin.alter_configs(ConfigResource.topic("t"), {"max.message.bytes": change})
    assert "3000" not in str(raised.value)


async def test_a_resource_of_a_kind_in_words(admin: KafkaAdmin) -> None:
    resource = ConfigResource("topic", "t")  # type: ignore[arg-type]
    with pytest.raises(IllegalArgumentException, match=r"the type of 't' is 'topic'; .* use ConfigResource\.topic"):
        await admin.describe_configs(resource)
    with pytest.raises(IllegalArgumentException, match="the type of 't' is 'topic'"):
        await admin.alter_configs(resource, {"retention.ms": "1"})


async def test_a_resource_twice(admin: KafkaAdmin) -> None:
    with pytest.raises(IllegalArgumentException, match=r"^named twice: topic 't'$"):
        await admin.describe_all_configs([T, T])
