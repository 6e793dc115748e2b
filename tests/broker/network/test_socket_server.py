from __future__ import annotations

import asyncio
import contextlib
import gc
import socket

import pytest

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.broker.network.gate.new_connections import CONNECTION_QUEUE_SIZE
from aioproducer.broker.network.socket_server import SocketServer
from aioproducer.timing.clock import SystemClock
from tests.broker.raw_clients.served import Served


def make_server(**configs: object) -> SocketServer:
    return SocketServer(0, BrokerConfig.of(configs), SystemClock(), is_supported=lambda key, version: False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_listens_on_the_port_it_says_until_it_is_closed(host: str) -> None:
    server = make_server()
    port = (await server.open([EndPoint("PLAINTEXT", host, 0)]))["PLAINTEXT"].port
    await server.enable_request_processing()
    reader, writer = await asyncio.open_connection(host, port)
    await server.close()
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()
    with contextlib.suppress(ConnectionResetError):
        await writer.wait_closed()
    with pytest.raises(OSError):
        await asyncio.open_connection(host, port)
    await server.close()


async def test_no_client_is_served_before_processing_is_enabled() -> None:
    server = make_server()
    port = (await server.open([EndPoint("PLAINTEXT", "127.0.0.1", 0)]))["PLAINTEXT"].port
    _, writer = await asyncio.open_connection("127.0.0.1", port)  # the system makes the connection
    for _ in range(10):
        await asyncio.sleep(0)
    assert server.connection_count == 0
    await server.enable_request_processing()
    while True:
        await asyncio.sleep(0)
        if server.connection_count:
            break
    writer.close()
    await server.close()


async def test_opens_all_ports_or_none() -> None:
    server = make_server(
        listeners="A://:0,B://:0",
        listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT",
        inter_broker_listener_name="A",
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        with pytest.raises(OSError):
            await server.open([EndPoint("A", "127.0.0.1", 0), EndPoint("B", "127.0.0.1", port)])
    gc.collect()  # a port that was forgotten would warn, which is an error


@pytest.mark.parametrize("turns", range(12))
async def test_a_connection_that_is_being_accepted_is_dropped_too(turns: int) -> None:
    served = Served()
    async with served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=5) as client:
            for _ in range(turns):
                await asyncio.sleep(0)
            await served.close()
            assert served.server.connection_count == 0
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
    gc.collect()  # a transport that was forgotten would warn, which is an error


async def test_need_not_have_been_opened_to_be_closed() -> None:
    await make_server().close()


async def test_new_connections_of_a_removed_processor_are_taken_over() -> None:
    server = make_server(num_network_threads=2)
    await server.open([EndPoint("PLAINTEXT", "127.0.0.1", 0)])
    stays, goes = (processor.new_connections for processor in server.processors)
    pairs = [socket.socketpair() for _ in range(2 * CONNECTION_QUEUE_SIZE - 5)]
    for number, (ours, _) in enumerate(pairs):
        assert (goes if number < CONNECTION_QUEUE_SIZE else stays).offer(ours, "127.0.0.1")
    server.reconfigure(BrokerConfig.of({"num.network.threads": 1}))
    assert len(stays) == CONNECTION_QUEUE_SIZE, "the acceptor keeps the rest until there is room"
    assert not goes
    await server.enable_request_processing()
    while server.connection_count < len(pairs):  # noqa: ASYNC110
        await asyncio.sleep(0)
    await server.close()
    for _, theirs in pairs:
        theirs.close()
