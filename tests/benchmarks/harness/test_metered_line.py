from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator

import pytest

from benchmarks.harness.metered_line import metered_line
from benchmarks.harness.produce_frame import produce_frame
from benchmarks.harness.produce_meter import Counts
from tests.support.leaks import no_leaks as no_leaks

pytestmark = [
    pytest.mark.usefixtures("no_leaks"),
    pytest.mark.skipif(sys.platform == "win32", reason="select knows sockets alone, and no standard input"),
]


@contextlib.asynccontextmanager
async def echo() -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield "{}:{}".format(*server.sockets[0].getsockname())


async def test_everything_comes_back_after_the_delay_and_is_counted() -> None:
    frame = produce_frame("any", bytes(3_000_000))
    async with echo() as address, metered_line() as line:
        await line.leads_to(address)
        reader, writer = await asyncio.open_connection(line.host, line.port)
        for round_trip in (60, 20):
            await line.set_round_trip(round_trip)
            begun = time.monotonic()
            writer.write(frame)
            assert await reader.readexactly(len(frame)) == frame
            assert time.monotonic() - begun >= round_trip / 1000
            sent = await line.set_round_trip(0)
            assert (sent.requests, sent.batches) == (1, 1)
            assert 3_000_000 < sent.batch_bytes < len(frame)
        assert await line.set_round_trip(0) == Counts(), "what was answered is not counted again"
        writer.write_eof()
        assert await reader.read() == b"", "the end goes over the line, and comes back"
        writer.close()


async def test_bytes_that_are_not_to_be_counted() -> None:
    frame = produce_frame("any", bytes(1000))
    async with echo() as address, metered_line() as line:
        await line.leads_to(address)
        await line.set_round_trip(0, uncounted=1000)
        reader, writer = await asyncio.open_connection(line.host, line.port)
        writer.write(frame * 3)
        await reader.readexactly(3 * len(frame))
        assert (await line.set_round_trip(0)).requests == 2
        writer.close()


async def test_a_line_that_leads_nowhere_refuses() -> None:
    async with metered_line() as line:
        for _ in range(2):
            reader, writer = await asyncio.open_connection(line.host, line.port)
            assert await reader.read() == b""
            writer.close()
            await line.leads_to("127.0.0.1:1")  # nobody listens there


async def test_an_end_that_is_gone_ends_its_connection_alone() -> None:
    async with echo() as address, metered_line() as line:
        await line.leads_to(address)
        gone, stays = [await asyncio.open_connection(line.host, line.port) for _ in range(2)]
        gone[1].write(produce_frame("any", bytes(1 << 20)))
        gone[1].transport.abort()
        frame = produce_frame("any", b"still there")
        stays[1].write(frame)
        assert await stays[0].readexactly(len(frame)) == frame
        stays[1].close()


async def test_a_line_that_has_ended_is_an_error() -> None:
    async with metered_line() as line:
        assert line._process.stdin is not None
        line._process.stdin.close()
        await line._process.wait()
        with pytest.raises((RuntimeError, OSError)):
            await line.set_round_trip(1)
