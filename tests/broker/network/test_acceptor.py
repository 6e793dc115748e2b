from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.network import acceptor as acceptor_module
from aioproducer.broker.network.acceptor import Acceptor
from aioproducer.broker.network.gate import listening_socket
from aioproducer.broker.network.gate.connection_gate import OPEN_GATE
from aioproducer.broker.network.gate.listening_socket import Listening, listen
from aioproducer.timing.clock import SystemClock


class SomeProcessor:
    """Takes connections while it has room."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.connections: list[Any] = []
        self.new_connections = self
        self.more = asyncio.Event()

    def offer(self, connection: Any, address: str) -> bool:
        if len(self.connections) >= self.room:
            return False
        self.connections.append(connection)
        return True

    async def has_room(self) -> None:
        await self.more.wait()


async def accepting(*processors: SomeProcessor) -> tuple[Acceptor, Listening]:
    listening = await listen("127.0.0.1", 0, backlog=50, receive_buffer=-1)
    end_point = EndPoint("PLAINTEXT", "127.0.0.1", listening.port)
    acceptor = Acceptor(end_point, "PLAINTEXT", listening, OPEN_GATE, SystemClock(), send_buffer=20_000)
    acceptor.processors = list(processors)  # type: ignore[arg-type]
    acceptor.start()
    return acceptor, listening


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0.001)


async def test_processors_take_turns_and_sockets_are_set_up() -> None:
    first, second = SomeProcessor(10), SomeProcessor(10)
    acceptor, listening = await accepting(first, second)
    clients = [socket.create_connection(("127.0.0.1", listening.port)) for _ in range(4)]
    await turns()
    assert (len(first.connections), len(second.connections)) == (2, 2)
    for connection in first.connections:
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (20_000, 40_000)  # Linux doubles it
    acceptor.close()
    await acceptor.wait_closed()
    for one in (*clients, *first.connections, *second.connections):
        one.close()


async def test_a_full_processor_is_skipped_and_if_all_are_full_nothing_is_dropped() -> None:
    full, roomy = SomeProcessor(0), SomeProcessor(2)
    acceptor, listening = await accepting(full, roomy)
    clients = [socket.create_connection(("127.0.0.1", listening.port)) for _ in range(4)]
    await turns()
    assert (len(full.connections), len(roomy.connections)) == (0, 2)
    blocked = acceptor.blocked_percent(SystemClock.monotonic())
    assert blocked > 0, "reported while it lasts"
    full.room = roomy.room = 10
    full.more.set()
    roomy.more.set()
    await turns()
    assert len(full.connections) + len(roomy.connections) == 4
    assert 0 < acceptor.blocked_percent(SystemClock.monotonic() + 10) < blocked
    acceptor.close()
    await acceptor.wait_closed()
    for one in (*clients, *full.connections, *roomy.connections):
        one.close()


async def test_without_descriptors_it_continues_later_and_logs_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor_module, "_AFTER_AN_ERROR", 0.001)
    monkeypatch.setattr(listening_socket, "is_reserved", lambda descriptor: True)
    processor = SomeProcessor(10)
    acceptor, listening = await accepting(processor)
    clients = [socket.create_connection(("127.0.0.1", listening.port)) for _ in range(3)]
    for client in clients:
        client.setblocking(False)
        assert await asyncio.get_running_loop().sock_recv(client, 1) == b"", "it is closed at once"
        client.close()
    monkeypatch.setattr(listening_socket, "is_reserved", lambda descriptor: False)
    clients = [socket.create_connection(("127.0.0.1", listening.port))]
    await turns()
    assert len(processor.connections) == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert "failed (failures so far: 1)" in line
    assert "the last 32 are reserved for files" in line
    acceptor.close()
    await acceptor.wait_closed()
    for one in (*clients, *processor.connections):
        one.close()
