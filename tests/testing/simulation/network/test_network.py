from __future__ import annotations

import asyncio
import errno
import socket
from dataclasses import replace
from functools import partial

import pytest

from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Address, Fate, NetworkFaults
from tests.testing.simulation.simulated import EXACT, Recorder, World, connect, serve


class Fated(NetworkFaults):
    def __init__(self, fate: Fate = Fate.ARRIVE, until: float = 0.0) -> None:
        self.fate = fate
        self.until = until

    def connecting(self, host: str) -> Fate:
        return self.fate

    def unreachable_until(self, server: Address) -> float:
        return self.until


def test_a_connection_takes_a_round_trip() -> None:
    world = World()

    async def work() -> float:
        server, accepted = await serve()
        began = world.loop.now
        client = await connect(server)
        took = world.loop.now - began
        assert client.said == accepted[0].said == ["made"]
        assert client.transport.get_extra_info("peername") == (server.host, server.port)
        assert len(world.network.open) == 2
        client.transport.close()
        await accepted[0].lost
        await asyncio.sleep(1)
        assert (client.said, accepted[0].said) == (["made", "lost"], ["made", "eof", "lost"])
        assert not world.network.open
        server.close()
        return took

    # A look-up and two ways, each between half and one and a half of the latency.
    assert 0.015 <= world.run(work) <= 0.05


@pytest.mark.parametrize(
    ("fate", "error", "number", "seconds"),
    [
        (Fate.REFUSED, ConnectionRefusedError, errno.ECONNREFUSED, 0.01),
        (Fate.LOST, TimeoutError, errno.ETIMEDOUT, 127.0),
        (Fate.UNKNOWN_HOST, socket.gaierror, socket.EAI_NONAME, 0.0),
    ],
)
def test_connections_that_are_not_made(fate: Fate, error: type[OSError], number: int, seconds: float) -> None:
    world = World(faults=Fated(fate))

    async def work() -> None:
        server, accepted = await serve()
        began = world.loop.now
        with pytest.raises(error) as raised:
            await connect(server)
        assert raised.value.errno == number
        assert world.loop.now - began == pytest.approx(seconds, abs=0.03)
        assert accepted == []
        assert not world.network.open
        server.close()

    world.run(work)


def test_without_a_listener_the_connection_is_refused() -> None:
    world = World()

    async def work() -> None:
        server, _ = await serve()
        server.close()
        with pytest.raises(ConnectionRefusedError):
            await connect(server)

    world.run(work)


def test_giving_up_a_connect_leaves_nothing() -> None:
    for seed in range(30):
        world = World(seed=seed)

        async def work(world: World = world, seed: int = seed) -> None:
            server, accepted = await serve()
            task = asyncio.ensure_future(connect(server))
            await asyncio.sleep(0.002 * seed)
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result().transport.close()
            await asyncio.sleep(1)
            assert not world.network.open
            assert all(end.said[-1] == "lost" for end in accepted)
            server.close()

        world.run(work)


def test_a_server_out_of_reach_is_reached_later() -> None:
    faults = Fated()
    world = World(faults=faults)

    async def work() -> None:
        server, accepted = await serve(b"answer")
        client = await connect(server)
        faults.until = world.loop.now + 5
        client.transport.write(b"question")
        await asyncio.sleep(4.9)
        assert not accepted[0].received
        assert not client.received
        await asyncio.sleep(0.2)
        assert accepted[0].received == b"question"
        assert client.received == b"answer"
        client.transport.close()
        server.close()

    world.run(work)


def test_a_port_is_taken_once() -> None:
    world = World()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        one, _ = await serve()
        other, _ = await serve()
        assert one.port != other.port
        with pytest.raises(OSError, match="in use"):
            await loop.create_server(asyncio.Protocol, one.host, one.port)
        one.close()
        again = await loop.create_server(asyncio.Protocol, one.host, one.port)
        again.close()
        other.close()

    world.run(work)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("splits", [0.0, 0.5, 0.9])
def test_bytes_come_in_order_however_they_travel(seed: int, splits: float) -> None:
    world = World(seed=seed, conditions=Conditions(splits=splits, window=3000, bandwidth=1e5))
    data = bytes(range(256)) * 100

    async def work() -> None:
        server, accepted = await serve()
        client = await connect(server)
        for start in range(0, len(data), 700):
            client.transport.write(data[start : start + 700])
        client.transport.close()
        await client.lost
        await asyncio.sleep(1)
        assert accepted[0].received == data
        server.close()

    world.run(work)


def test_pieces_are_all_of_it() -> None:
    world = World(conditions=Conditions(splits=0.7))
    network = world.network
    found = [network.pieces(count) for count in range(50) for _ in range(10)]
    assert [sum(sizes) for sizes in found] == [count for count in range(50) for _ in range(10)]
    assert all(size > 0 for sizes in found for size in sizes)
    assert max(map(len, found)) > 3
    world.loop.close()


def _note(order: list[int], number: int, data: bytes) -> None:
    order.append(number)


def test_the_seed_decides_which_socket_is_ready_first() -> None:
    orders = set()
    for seed in range(20):
        world = World(seed=seed, conditions=EXACT)

        async def work(world: World = world) -> tuple[int, ...]:
            server, accepted = await serve()
            order: list[int] = []
            clients = [await connect(server) for _ in range(4)]
            for number, client in enumerate(clients):
                client.data_received = partial(_note, order, number)  # type: ignore[method-assign]
                accepted[number].transport.write(b"x")
            world.loop.hold(1)
            await asyncio.sleep(0.1)
            for client in clients:
                client.transport.close()
            server.close()
            return tuple(order)

        orders.add(world.run(work))
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert len(orders) > 5


def test_a_name_may_have_an_address_without_a_listener() -> None:
    world = World(conditions=replace(EXACT, dead_address=True))

    async def work() -> None:
        server, _ = await serve()
        found = await world.loop.getaddrinfo("kafka", server.port)
        dead, alive = [address for *_, (address, _) in found]
        assert alive == server.host
        with pytest.raises(ConnectionRefusedError):
            await world.loop.create_connection(Recorder, dead, server.port)
        await world.loop.create_connection(Recorder, alive, server.port)

    world.run(work)
