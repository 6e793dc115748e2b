from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import create_autospec

import pytest

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ConfigException, IllegalArgumentException, IllegalStateException
from tests.admin.clusters import admin as admin
from tests.admin.clusters import cluster as cluster


async def test_from_config(cluster: EmbeddedCluster) -> None:
    async with KafkaAdmin.from_config(f"bootstrap.servers={cluster.bootstrap_servers}\nclient.id=x") as admin:
        assert await admin.list_topics() == {}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "'bootstrap.servers' is missing"),
        (
            {"bootstrap_servers": "x:1", "client_ids": "x"},
            "unknown admin config 'client.ids'; did you mean 'client.id'",
        ),
        ({"bootstrap_servers": "x:1", "security_protocol": "TLS"}, "one of plaintext, ssl, sasl_plaintext, sasl_ssl"),
        ({"bootstrap_servers": "nowhere"}, "nowhere"),
    ],
)
def test_wrong_configs(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        KafkaAdmin(**config)


async def test_misuse(admin: KafkaAdmin) -> None:
    with pytest.raises(IllegalArgumentException, match="twice"):
        await admin.create_topics([NewTopic("a"), NewTopic("a")])
    with pytest.raises(IllegalStateException, match="not started"):
        await KafkaAdmin(bootstrap_servers="x:1").list_topics()


async def test_mocks_know_its_calls() -> None:
    mock = create_autospec(KafkaAdmin, instance=True)
    mock.list_topics.return_value = {}
    assert await mock.list_topics(internal=True) == {}
    with pytest.raises(TypeError):
        await mock.create_topics()


def test_every_call_is_documented() -> None:
    calls = [call for name, call in inspect.getmembers(KafkaAdmin, inspect.isfunction) if not name.startswith("_")]
    assert len(calls) > 20
    assert [call.__name__ for call in calls if not call.__doc__] == []
