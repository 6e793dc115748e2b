"""The transport behaves as asyncio's own; nothing relies on undocumented behaviour."""

from __future__ import annotations

import asyncio

import pytest

from aioproducer.testing.simulation.network.conditions import Conditions
from tests.testing.simulation.simulated import Recorder, World, connect, serve

SMALL = Conditions(latency=0.01, splits=0.0, window=100)


def test_writing_is_paused_above_high_water_and_resumed_below_low() -> None:
    world = World(conditions=SMALL)

    async def work() -> None:
        server, accepted = await serve()
        client = await connect(server)
        transport = client.transport
        transport.set_write_buffer_limits(high=1000)
        assert transport.get_write_buffer_limits() == (250, 1000)
        transport.write(b"x" * 1100)
        assert (transport.get_write_buffer_size(), client.said) == (1000, ["made"])
        transport.writelines([b"x" * 50, b"", b"x" * 50])
        assert client.said == ["made", "pause"]
        await asyncio.sleep(1)
        assert client.said == ["made", "pause", "resume"]
        assert transport.get_write_buffer_size() == 0
        assert len(accepted[0].received) == 1200
        transport.close()
        server.close()

    world.run(work)


def test_close_sends_what_was_written_and_abort_does_not() -> None:
    for method, expected in (("close", 5000), ("abort", None)):
        world = World(conditions=SMALL)

        async def work(method: str = method, expected: int | None = expected) -> None:
            server, accepted = await serve()
            client = await connect(server)
            client.transport.write(b"x" * 5000)
            getattr(client.transport, method)()
            assert client.transport.is_closing()
            client.transport.write(b"too late" * 0)
            await client.lost
            await asyncio.sleep(1)
            assert client.said == ["made", "lost"]
            if expected is None:
                assert len(accepted[0].received) < 5000
            else:
                assert len(accepted[0].received) == expected
            server.close()

        world.run(work)


def test_nothing_is_read_while_reading_is_paused() -> None:
    world = World()

    async def work() -> None:
        server, accepted = await serve()
        client = await connect(server)
        client.transport.pause_reading()
        assert not client.transport.is_reading()
        accepted[0].transport.write(b"hello")
        await asyncio.sleep(1)
        assert client.received == b""
        client.transport.resume_reading()
        await asyncio.sleep(1)
        assert client.received == b"hello"
        client.transport.close()
        server.close()

    world.run(work)


def test_waiting_buffers_are_not_copied() -> None:
    """So the simulation detects a buffer reused too early (uvloop, and asyncio since Python 3.12, do not copy)."""
    world = World(conditions=SMALL)

    async def work() -> None:
        server, accepted = await serve()
        client = await connect(server)
        data = bytearray(b"a" * 300)
        client.transport.write(data)
        data[:] = b"b" * 300
        await asyncio.sleep(1)
        assert accepted[0].received == b"a" * 100 + b"b" * 200
        client.transport.close()
        server.close()

    world.run(work)


def test_a_transport_may_write_later() -> None:
    """The transports of uvloop do the same."""
    world = World(conditions=Conditions(splits=0.0, writes_later=True))

    async def work() -> None:
        server, accepted = await serve()
        client = await connect(server)
        client.transport.write(b"hello")
        assert client.transport.get_write_buffer_size() == 5
        await asyncio.sleep(1)
        assert accepted[0].received == b"hello"
        client.transport.close()
        server.close()

    world.run(work)


def test_a_buffered_protocol_reads_into_its_own_buffer() -> None:
    world = World()

    class Buffered(asyncio.BufferedProtocol):
        def __init__(self) -> None:
            self.buffer = bytearray(4)
            self.received = b""

        def get_buffer(self, sizehint: int) -> bytearray:
            return self.buffer

        def buffer_updated(self, count: int) -> None:
            self.received += self.buffer[:count]

    async def work() -> None:
        server, accepted = await serve()
        transport, protocol = await world.loop.create_connection(Buffered, server.host, server.port)
        accepted[0].transport.write(b"0123456789")
        await asyncio.sleep(1)
        assert protocol.received == b"0123456789"
        transport.close()
        server.close()

    world.run(work)


def test_a_protocol_that_raises_loses_its_connection() -> None:
    world = World()
    errors: list[object] = []
    world.loop.set_exception_handler(lambda loop, context: errors.append(context["exception"]))

    class Raising(Recorder):
        def data_received(self, data: bytes) -> None:
            raise ZeroDivisionError

    async def work() -> None:
        server, accepted = await serve()
        _, client = await world.loop.create_connection(Raising, server.host, server.port)
        accepted[0].transport.write(b"x")
        await client.lost
        assert client.said == ["made", "ZeroDivisionError"]
        assert [type(error) for error in errors] == [ZeroDivisionError]
        server.close()

    world.run(work)


def test_eof_closes_unless_the_protocol_keeps_the_connection() -> None:
    world = World()

    class Keeping(Recorder):
        def eof_received(self) -> bool:  # type: ignore[override]
            self.said.append("eof")
            return True

    async def work() -> None:
        server, accepted = await serve()
        _, client = await world.loop.create_connection(Keeping, server.host, server.port)
        accepted[0].transport.close()
        await asyncio.sleep(1)
        assert client.said == ["made", "eof"]
        client.transport.close()
        await client.lost
        server.close()

    world.run(work)


def test_only_bytes_are_written() -> None:
    world = World()

    async def work() -> None:
        server, _ = await serve()
        client = await connect(server)
        with pytest.raises(TypeError, match="not str"):
            client.transport.write("text")  # type: ignore[arg-type]
        assert not client.transport.can_write_eof()
        socket = client.transport.get_extra_info("socket")
        socket.setsockopt(6, 1, 1)
        assert socket.getpeername() == (server.host, server.port)
        assert socket.getsockname() == client.transport.get_extra_info("sockname")
        client.transport.close()
        server.close()

    world.run(work)
