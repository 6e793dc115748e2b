from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import ConfigException
from aioproducer.protocol.messages.metadata import MetadataRequest
from tests.broker.raw_clients.raw_client import Connect

CONFIG = "max.connections.per.ip.overrides"


class Names:
    """A name service that answers when it may, in threads."""

    def __init__(self) -> None:
        self.addresses = {"one.example": ["10.0.0.1"], "two.example": ["127.0.0.1", "::1", "127.0.0.1"]}
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.lookups: list[str] = []

    def getaddrinfo(self, name: str, port: None, *, type: int) -> list[object]:
        assert threading.current_thread() is not threading.main_thread(), "the loop waits for no name service"
        self.lookups.append(name)
        self.may_answer.wait()
        if name not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(0, type, 6, "", (address, 0)) for address in self.addresses[name]]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    names = Names()
    monkeypatch.setattr("aioproducer.broker.quotas.override_hosts.getaddrinfo", names.getaddrinfo)
    return names


@pytest.fixture
async def cluster(names: Names) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(configs={CONFIG: "one.example:0"}) as cluster:
        yield cluster


def limits(cluster: EmbeddedCluster) -> dict[str, int]:
    return dict(cluster._servers[0].gate.quotas._limits.max_connections_per_ip_overrides)


async def test_localhost_is_what_the_system_says() -> None:
    async with EmbeddedCluster(configs={CONFIG: "localhost:7"}) as cluster:
        found = limits(cluster)
    assert found["127.0.0.1"] == 7
    assert set(found.values()) == {7}


async def test_a_name_that_cannot_be_resolved_stops_the_start(names: Names) -> None:
    cluster = EmbeddedCluster(configs={CONFIG: "one.example:1,no.example:2"})
    with pytest.raises(ConfigException, match=r"the host name 'no\.example' cannot be resolved: Name or service"):
        await cluster.start()
    names.addresses["no.example"] = ["10.0.0.2"]
    await cluster.start()
    assert limits(cluster) == {"10.0.0.1": 1, "10.0.0.2": 2}
    await cluster.close()


async def test_slow_names_take_one_thread_and_are_dropped_when_the_config_changes(
    cluster: EmbeddedCluster, names: Names
) -> None:
    names.lookups.clear()
    names.may_answer.clear()
    cluster.alter_broker_configs({CONFIG: ",".join(f"slow{number}.example:1" for number in range(100))})
    while not names.lookups:  # noqa: ASYNC110 - a thread does it
        await asyncio.sleep(0.001)
    threads = cluster._servers[0].context.threads
    await asyncio.gather(*(threads.run(lambda: None) for _ in range(20)))
    assert names.lookups == ["slow0.example"]
    cluster.alter_broker_configs({CONFIG: "two.example:2"})
    names.may_answer.set()
    await cluster.listeners_changed()
    assert names.lookups == ["slow0.example", "two.example"]
    assert limits(cluster) == {"127.0.0.1": 2, "::1": 2}


async def test_a_change_is_obeyed_when_its_names_are_resolved(
    cluster: EmbeddedCluster, connect: Connect, names: Names
) -> None:
    client = await connect()
    names.may_answer.clear()
    cluster.alter_broker_configs({CONFIG: "one.example:3,two.example:0,10.0.0.9:4"})
    assert limits(cluster) == {"10.0.0.1": 3, "10.0.0.9": 4}, "known addresses count at once"
    assert (await client.request(MetadataRequest(), 9)).brokers
    cluster.alter_broker_configs({CONFIG: "two.example:0"})
    names.may_answer.set()
    await cluster.listeners_changed()
    assert limits(cluster) == {"127.0.0.1": 0, "::1": 0}
    assert await (await connect()).is_closed()


async def test_a_name_that_cannot_be_resolved_later_keeps_the_addresses_it_had(
    cluster: EmbeddedCluster, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    names.addresses.clear()
    cluster.alter_broker_configs({CONFIG: "one.example:3,no.example:2"})
    with pytest.raises(ConfigException, match=r"'(one|no)\.example' cannot be resolved"):
        await cluster.listeners_changed()
    assert limits(cluster) == {"10.0.0.1": 3}
    assert "node 0: config 'max.connections.per.ip.overrides': the host name 'no.example'" in caplog.text
    names.addresses["no.example"] = ["10.0.0.2"]
    cluster.alter_broker_configs({CONFIG: "no.example:2"})
    await cluster.listeners_changed()
    assert limits(cluster) == {"10.0.0.2": 2}


async def test_names_of_dynamic_configs_do_not_stop_a_start(
    cluster: EmbeddedCluster, names: Names, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.alter_broker_configs({CONFIG: "two.example:5"})
    await cluster.stop_node(0)
    del names.addresses["two.example"]
    await cluster.start_node(0)
    assert limits(cluster) == {}
    assert "the host name 'two.example' cannot be resolved" in caplog.text


async def test_a_node_may_stop_while_names_are_resolved(cluster: EmbeddedCluster, names: Names) -> None:
    count = len(names.lookups)
    names.may_answer.clear()
    try:
        cluster.alter_broker_configs({CONFIG: "two.example:5"})
        while len(names.lookups) == count:  # noqa: ASYNC110 - a thread looks names up
            await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await cluster.stop_node(0, clean=True)
    finally:
        names.may_answer.set()
