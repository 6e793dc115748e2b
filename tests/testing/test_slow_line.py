from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.slow_line import SlowLine
from tests.support.leaks import no_leaks as no_leaks

pytestmark = pytest.mark.usefixtures("no_leaks")

ONE_WAY = 0.05


@asynccontextmanager
async def echo_server() -> AsyncIterator[tuple[str, int]]:
    """Sends back all bytes, and closes the connection at a ``!``."""
    writers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while data := await reader.read(65536):
            if data.endswith(b"!"):
                break
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await server.wait_closed()
        await asyncio.sleep(0)


async def test_every_byte_arrives_in_order_and_not_before_its_time() -> None:
    async with echo_server() as address, SlowLine(ONE_WAY) as line:
        line.leads_to(*address)
        reader, writer = await asyncio.open_connection(*line.address)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        data = bytes(range(256)) * 1000
        for start in range(0, len(data), 1000):
            writer.write(data[start : start + 1000])
        assert await reader.readexactly(len(data)) == data
        assert loop.time() - begun >= 2 * ONE_WAY
        writer.close()
        await writer.wait_closed()


async def test_as_much_as_one_likes_is_under_way_at_once() -> None:
    async with echo_server() as address, SlowLine(ONE_WAY) as line:
        line.leads_to(*address)
        reader, writer = await asyncio.open_connection(*line.address)
        for number in range(50):
            writer.write(b"%2d" % number)
            await asyncio.sleep(ONE_WAY / 25)
        # All messages were sent before the first came back: none waited for an answer.
        assert await reader.readexactly(100) == b"".join(b"%2d" % number for number in range(50))
        writer.close()
        await writer.wait_closed()


async def test_the_end_of_a_connection_arrives_too() -> None:
    async with echo_server() as address, SlowLine(ONE_WAY) as line:
        line.leads_to(*address)
        reader, writer = await asyncio.open_connection(*line.address)
        writer.write(b"and that was it!")
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_who_comes_where_nothing_leads_is_turned_away() -> None:
    async with SlowLine(ONE_WAY) as line:
        for target in (None, ("127.0.0.1", 1)):
            if target is not None:
                line.leads_to(*target)
            reader, writer = await asyncio.open_connection(*line.address)
            assert await reader.read() == b""
            writer.close()


async def test_cut_ends_all_connections() -> None:
    async with echo_server() as address, SlowLine(ONE_WAY) as line:
        line.leads_to(*address)
        reader, writer = await asyncio.open_connection(*line.address)
        writer.write(b"lost")
        await asyncio.sleep(ONE_WAY / 2)
        line.cut()
        assert await reader.read() == b""
        writer.close()


async def test_a_producer_at_the_far_end() -> None:
    async with SlowLine(ONE_WAY) as line, EmbeddedCluster(advertised={0: line.address}) as cluster:
        line.leads_to(*cluster.listener(0))
        cluster.create_topic("t", 1)
        loop = asyncio.get_running_loop()
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0) as producer:
            await producer.send("t", b"first")
            begun = loop.time()
            await producer.send("t", b"second")
            assert loop.time() - begun >= 2 * ONE_WAY
        assert [record.value for record in cluster.log("t").records()] == [b"first", b"second"]
