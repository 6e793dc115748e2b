"""The event collector among the examples answers many events at once."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path
from types import ModuleType

import pytest
from aiohttp.test_utils import TestClient, TestServer

from aioproducer.broker import EmbeddedCluster
from tests.support.leaks import no_leaks as no_leaks

pytestmark = pytest.mark.usefixtures("no_leaks")

EXAMPLE = Path(__file__).parents[2] / "examples" / "aiohttp_events" / "events.py"


@pytest.fixture
def events() -> ModuleType:
    """The example, loaded anew."""
    spec = importlib.util.spec_from_file_location("events", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_all_none_and_some(events: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("events", 1, configs={"max.message.bytes": 200})
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)
        async with TestClient(TestServer(events.make_app())) as client:
            async with client.post("/events/bulk", data=b"1\n2") as answer:
                assert (answer.status, await answer.json()) == (201, {"delivered": 2, "failed": {}})
            async with client.post("/events/bulk", data=b"3\n%b" % bytes(300)) as answer:
                assert (answer.status, await answer.json()) == (207, {"delivered": 1, "failed": {"1": "not_sent"}})
            async with client.post("/events/bulk", data=bytes(300)) as answer:
                assert (answer.status, await answer.json()) == (207, {"delivered": 0, "failed": {"0": "not_sent"}})
            async with client.post("/events/bulk", data=b"") as answer:
                assert (answer.status, await answer.json()) == (201, {"delivered": 0, "failed": {}})
        assert [record.value for record in cluster.log("events").records()] == [b"1", b"2", b"3"]


async def test_without_a_broker(events: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(events.TIMEOUTS, "max_block_ms", 50)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{taken.getsockname()[1]}")
        async with (
            TestClient(TestServer(events.make_app())) as client,
            client.post("/events/bulk", data=b"1\n2") as answer,
        ):
            assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
            assert (await answer.json())["outcome"] == "not_sent"
