from __future__ import annotations

from typing import Any

import pytest

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.admin.calls.admin_requests import distinct
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.handlers import create_topics
from aioproducer.errors import IllegalArgumentException, NotControllerException, TimeoutException
from aioproducer.testing.simulation.listening import listen_on_network
from tests.admin.clusters import QUICK, running
from tests.admin.clusters import admin as admin
from tests.admin.clusters import cluster as cluster
from tests.support.virtual_time import World, virtual


async def test_the_request_moves_to_another_controller(admin: KafkaAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the broker says that it is not the controller, for one of two topics."""
    describe = create_topics._new_topic
    refusals = iter([True, True])

    def refuse(wanted: Any) -> Any:
        if wanted.name == "b" and next(refusals, False):
            raise NotControllerException("not the controller")
        return describe(wanted)

    monkeypatch.setattr(create_topics, "_new_topic", refuse)
    assert await admin.create_topics([NewTopic("a"), NewTopic("b")]) == {"a": None, "b": None}


@virtual
async def test_no_controller_in_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(listen=listen_on_network) as cluster:
        describe = create_topics._new_topic

        def refuse(wanted: Any) -> Any:
            if wanted.name == "b":
                raise NotControllerException("not the controller")
            return describe(wanted)

        monkeypatch.setattr(create_topics, "_new_topic", refuse)
        servers = cluster.bootstrap_servers
        async with KafkaAdmin(bootstrap_servers=servers, **QUICK, default_api_timeout_ms=100) as admin:
            created = await admin.create_topics([NewTopic("a"), NewTopic("b")])
            assert created["a"] is None
            assert type(created["b"]) is NotControllerException


async def test_asks_on_when_a_node_dies(admin: KafkaAdmin, cluster: EmbeddedCluster) -> None:
    await admin.create_topic(NewTopic("a"))
    await cluster.stop_node(0)
    await admin.create_topic(NewTopic("b"))
    assert list(await admin.list_topics()) == ["a", "b"]


@virtual
async def test_no_broker(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:
        servers = cluster.bootstrap_servers
        await cluster.close()
        async with KafkaAdmin(bootstrap_servers=servers, **QUICK, default_api_timeout_ms=50) as admin:
            for call in (admin.list_topics(), admin.create_topic(NewTopic("t")), admin.delete_topic("t")):
                with pytest.raises(TimeoutException, match=r"default\.api\.timeout\.ms=50: no broker can be reached"):
                    await call


def test_names_must_differ() -> None:
    assert distinct(iter(["a", "b"])) == ["a", "b"]
    with pytest.raises(IllegalArgumentException, match=r"^named twice: b, a$"):
        distinct(["b", "a", "c", "a", "b"])
