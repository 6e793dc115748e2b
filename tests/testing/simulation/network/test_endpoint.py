from __future__ import annotations

import asyncio

import pytest

from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.network.network import NetworkFaults
from tests.testing.simulation.simulated import EXACT, World


class Cut(NetworkFaults):
    """Severs the connection after this many bytes of the client's next write."""

    after: int | None = None

    def cut(self, end: Endpoint, count: int) -> int | None:
        return self.after if end.is_client else None


def pair(world: World) -> tuple[Endpoint, Endpoint]:
    return world.network.pair(1, ("10.0.1.1", 9092))


def send(end: Endpoint, data: bytes) -> int:
    return end.send(memoryview(data))


def test_sent_bytes_arrive_after_the_latency() -> None:
    world = World()

    async def work() -> None:
        client, server = pair(world)
        assert send(client, b"hello") == 5
        assert not server.readable()
        await asyncio.sleep(0.025)
        assert server.readable()
        assert server.receive(3) == b"hel"
        assert server.receive(100) == b"lo"
        assert not server.readable()

    world.run(work)


@pytest.mark.parametrize("lingers", [True, False])
def test_unsent_bytes_are_dropped_unless_the_socket_lingers(lingers: bool) -> None:
    """Three pieces of a second each: when the socket is closed, the second is on the line."""
    world = World(conditions=Conditions(latency=0.01, splits=0.0, bandwidth=5))

    async def work() -> None:
        client, server = pair(world)
        for piece in (b"first", b"other", b"third"):
            assert send(client, piece) == 5
        await asyncio.sleep(1.5)
        client.lingers = lingers
        client.close()
        await asyncio.sleep(10)
        assert server.receive(100) == (b"firstotherthird" if lingers else b"firstother")
        assert server.at_eof() is lingers

    world.run(work)


def test_no_more_than_the_window_is_under_way() -> None:
    world = World(conditions=Conditions(latency=0.01, splits=0.0, window=10))

    async def work() -> None:
        client, server = pair(world)
        assert send(client, b"0123456789abc") == 10
        assert not client.writable()
        assert send(client, b"abc") == 0
        await asyncio.sleep(0.025)
        assert not client.writable(), "it has arrived, and is not read yet"
        server.receive(4)
        assert client.writable()
        assert send(client, b"abcdef") == 4

    world.run(work)


def test_a_narrow_line_takes_its_time() -> None:
    world = World(conditions=Conditions(latency=0.01, splits=0.0, bandwidth=100))

    async def work() -> None:
        client, server = pair(world)
        send(client, b"x" * 50)
        send(client, b"y" * 50)
        await asyncio.sleep(0.45)
        assert not server.readable()
        await asyncio.sleep(0.1)
        assert server.receive(1000) == b"x" * 50
        await asyncio.sleep(0.5)
        assert server.receive(1000) == b"y" * 50

    world.run(work)


def test_the_end_of_the_stream_comes_after_the_bytes() -> None:
    world = World()

    async def work() -> None:
        client, server = pair(world)
        send(client, b"last words")
        client.close()
        client.close()
        await asyncio.sleep(0.1)
        assert not server.at_eof()
        assert server.receive(100) == b"last words"
        assert server.at_eof()

    world.run(work)


def test_an_end_that_is_closed_unread_resets_the_connection() -> None:
    world = World()

    async def work() -> None:
        client, server = pair(world)
        send(client, b"unread")
        await asyncio.sleep(0.1)
        server.close()
        await asyncio.sleep(0.1)
        assert not client.at_eof()
        with pytest.raises(ConnectionResetError):
            client.receive(1)
        with pytest.raises(BrokenPipeError):
            send(client, b"more")

    world.run(work)


def test_bytes_for_an_end_that_is_closed_reset_the_connection() -> None:
    world = World()

    async def work() -> None:
        client, server = pair(world)
        server.close()
        await asyncio.sleep(0.1)
        assert client.at_eof()
        assert send(client, b"too late") == 8, "the reset has not arrived yet"
        await asyncio.sleep(0.1)
        with pytest.raises(BrokenPipeError):
            send(client, b"more")

    world.run(work)


@pytest.mark.parametrize("after", [0, 3, 6])
def test_a_connection_is_severed_before_within_or_after_what_is_written(after: int) -> None:
    faults = Cut()
    world = World(faults=faults)

    async def work() -> None:
        client, server = pair(world)
        faults.after = after
        assert send(client, b"abcdef") == 6, "the kernel takes it all"
        faults.after = None
        assert send(client, b"ghi") == 3
        await asyncio.sleep(0.1)
        if after:
            assert server.receive(100) == b"abcdef"[:after]
        for end in (client, server):
            with pytest.raises(ConnectionResetError):
                end.receive(1)

    world.run(work)


@pytest.mark.parametrize("drops", [False, True])
def test_a_reset_may_drop_what_has_arrived(drops: bool) -> None:
    world = World(conditions=Conditions(latency=0.01, splits=0.0, reset_drops_unread=drops))

    async def work() -> None:
        client, server = pair(world)
        send(client, b"hello")
        await asyncio.sleep(0.1)
        client.sever()
        await asyncio.sleep(0.1)
        if not drops:
            assert server.receive(100) == b"hello"
        with pytest.raises(ConnectionResetError):
            server.receive(100)

    world.run(work)


def test_an_end_that_is_not_accepted_is_reset() -> None:
    world = World(conditions=EXACT)

    async def work() -> None:
        client, server = pair(world)
        server.reset()
        assert list(world.network.open) == [client]
        await asyncio.sleep(0.1)
        with pytest.raises(ConnectionResetError):
            client.receive(1)

    world.run(work)
