from __future__ import annotations

import asyncio

from tests.testing.simulation.simulated import World, connect, serve


def test_closed_it_accepts_nothing_and_keeps_its_connections() -> None:
    world = World()

    async def work() -> None:
        server, accepted = await serve(b"answer")
        assert server.is_serving()
        assert server.sockets[0].getsockname() == (server.host, server.port)
        client = await connect(server)
        server.close()
        server.close()
        assert not server.is_serving()
        assert server.sockets == ()
        client.transport.write(b"question")
        await asyncio.sleep(1)
        assert client.received == b"answer"
        waiting = asyncio.ensure_future(server.wait_closed())
        await asyncio.sleep(1)
        assert not waiting.done(), "a connection is open"
        client.transport.close()
        await waiting
        assert accepted[0].said[-1] == "lost"
        await server.wait_closed()

    world.run(work)


def test_a_connection_that_comes_too_late_is_reset() -> None:
    world = World()

    async def work() -> None:
        server, accepted = await serve()
        task = asyncio.ensure_future(connect(server))
        while not world.network.open:
            await asyncio.sleep(0)
            world.loop.hold(0.001)
        server.close()  # in the turn between the handshake and accept
        client = await task
        client.transport.write(b"x")
        await client.lost
        assert (client.said, accepted) == (["made", "ConnectionResetError"], [])

    world.run(work)


def test_a_server_knows_its_loop() -> None:
    world = World()

    async def work() -> None:
        server, _ = await serve()
        assert server.get_loop() is world.loop
        await server.start_serving()
        forever = asyncio.ensure_future(server.serve_forever())
        await asyncio.sleep(1)
        forever.cancel()
        server.close()

    world.run(work)
