from __future__ import annotations

import asyncio
import contextlib
import gc
import socket

import pytest

from aioproducer.broker.processor import Processor
from aioproducer.broker.request import Request
from aioproducer.broker.socket_server import SocketServer
from aioproducer.clock import SystemClock


class Nothing:
    """Handles nothing."""

    def is_supported(self, api_key: int, api_version: int) -> bool:
        return False

    def handle(self, request: Request, frame: bytes, body_at: int) -> None:
        raise AssertionError


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_listens_on_the_port_it_says_until_it_is_closed(host: str) -> None:
    processor = Processor(Nothing(), SystemClock(), max_receive_size=1000, max_idle_ms=1000)
    server = SocketServer(processor)
    port = await server.open(host, 0)
    reader, writer = await asyncio.open_connection(host, port)
    await server.close()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    with pytest.raises(OSError):
        await asyncio.open_connection(host, port)
    await server.close()


@pytest.mark.parametrize("turns", range(8))
async def test_a_connection_that_is_being_accepted_is_dropped_too(turns: int) -> None:
    processor = Processor(Nothing(), SystemClock(), max_receive_size=1000, max_idle_ms=1000)
    server = SocketServer(processor)
    with socket.create_connection(("127.0.0.1", await server.open("127.0.0.1", 0)), timeout=5) as client:
        for _ in range(turns):
            await asyncio.sleep(0)
        await server.close()
        assert processor.connection_count == 0
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
    gc.collect()  # a transport that was forgotten would warn, which is an error


async def test_need_not_have_been_opened_to_be_closed() -> None:
    await SocketServer(Processor(Nothing(), SystemClock(), max_receive_size=1000, max_idle_ms=1000)).close()
