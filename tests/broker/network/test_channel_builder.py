from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from random import Random

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.network.channel.memory_pool import MemoryPool
from aioproducer.broker.network.channel.unread_responses import UnreadResponses
from aioproducer.broker.network.gate.listening_socket import AcceptedSocket
from aioproducer.broker.network.processor import Processor
from aioproducer.broker.requests.request_channel import RequestChannel
from aioproducer.broker.requests.slices import Slices
from aioproducer.broker.security.listener_security import ListenerSecurity
from aioproducer.broker.security.scram_credentials import ScramCredentials
from aioproducer.timing.clock import SystemClock
from tests.support.security.certificates import make_certificates

ADDRESS = "10.0.0.1"


class Departures:
    """A gate that counts departed connections."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def arrive(
        self, listener: str, address: str, connection: AcceptedSocket, admit: Callable[[AcceptedSocket, str], object]
    ) -> None:
        raise AssertionError("the test lets them in")

    def depart(self, listener: str, address: str) -> None:
        self.gone.append(address)


@pytest.fixture(scope="module")
def securities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ListenerSecurity]:
    """By protocol."""
    keystore = make_certificates(tmp_path_factory.mktemp("certificates")).broker
    made = {}
    for protocol in ("PLAINTEXT", "SSL"):
        configs = {"listeners": f"{protocol}://:0", "inter.broker.listener.name": protocol}
        config = BrokerConfig.of({**configs, "ssl.keystore.location": str(keystore)})
        made[protocol] = ListenerSecurity(protocol, config, ScramCredentials())
    return made


def make_processor(security: ListenerSecurity, gate: Departures) -> Processor:
    clock = SystemClock()
    return Processor(
        0,
        "processor",
        security.protocol,
        RequestChannel(500, clock),
        gate,
        clock,
        is_supported=lambda key, version: True,
        next_connection_index=lambda: 0,
        log_close=lambda connection_id, reason: None,
        security=security,
        max_idle_ms=-1,
        receive_timeout_ms=-1,
        memory=MemoryPool(-1, Random(0), clock),
        unread=UnreadResponses(),
        slices=Slices(clock),
    )


async def close_after(turns: int, security: ListenerSecurity) -> list[str]:
    """Closes a processor some loop turns after a silent client has connected; returns the departed connections."""
    gate = Departures()
    processor = make_processor(security, gate)
    processor.start()
    ours, client = socket.socketpair()
    with client:
        ours.setblocking(False)
        client.setblocking(False)
        assert processor.new_connections.offer(ours, ADDRESS)
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(20):  # a handshake may take 60 s
            await processor.close()
            assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
    return gate.gone


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_however_far_a_connection_has_come_it_is_closed_at_once_and_departs_once(
    securities: dict[str, ListenerSecurity], protocol: str, loop: str
) -> None:
    make_loop = asyncio.new_event_loop if loop == "asyncio" else pytest.importorskip("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=make_loop) as runner:
        for turns in range(8):
            assert runner.run(close_after(turns, securities[protocol])) == [ADDRESS], f"after {turns} turns"


async def test_a_bug_on_the_way_is_logged_and_costs_that_connection_alone(
    securities: dict[str, ListenerSecurity], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a bug")

    security, gate = securities["PLAINTEXT"], Departures()
    processor = make_processor(security, gate)
    processor.start()
    with monkeypatch.context() as patched:
        patched.setattr(security, "authenticator", broken)
        ours, client = socket.socketpair()
        with client:
            client.setblocking(False)
            assert processor.new_connections.offer(ours, ADDRESS)
            assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
    (record,) = caplog.records
    assert record.getMessage() == f"a new connection from {ADDRESS} on listener PLAINTEXT failed"
    assert record.exc_info is not None
    assert gate.gone == [ADDRESS]
    ours, client = socket.socketpair()
    ours.setblocking(False)
    with client:
        assert processor.new_connections.offer(ours, "10.0.0.2")
        while not processor.connection_count:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)
        await processor.close()
    assert gate.gone == [ADDRESS, "10.0.0.2"]
