"""A simulated loop and network for the tests of their parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Network, NetworkFaults
from aioproducer.testing.simulation.network.server import SimulatedServer
from aioproducer.testing.simulation.trace import Trace

T = TypeVar("T")

EXACT = Conditions(latency=0.01, splits=0.0)


class World:
    """The parts of a simulation that tests need, and ``run``, which runs a coroutine in it."""

    def __init__(
        self,
        *,
        seed: int = 0,
        conditions: Conditions = EXACT,
        faults: NetworkFaults | None = None,
        **options: Any,
    ) -> None:
        random = Random(seed)
        self.trace = Trace(keep=True)
        self.network = Network(random, conditions, faults or NetworkFaults(), self.trace)
        self.loop = SimulatedLoop(random, self.network, **options)

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs in virtual time, and closes the loop."""
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            return runner.run(work())


class Recorder(asyncio.Protocol):
    """A protocol that records its calls; it sends ``reply`` when bytes come."""

    def __init__(self, reply: bytes = b"") -> None:
        self.said: list[object] = []
        self.received = bytearray()
        self.transport: asyncio.Transport
        self.lost = asyncio.get_running_loop().create_future()
        self._reply = reply

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.said.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self._reply:
            self.transport.write(self._reply)

    def eof_received(self) -> None:
        self.said.append("eof")

    def pause_writing(self) -> None:
        self.said.append("pause")

    def resume_writing(self) -> None:
        self.said.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.said.append("lost" if error is None else type(error).__name__)
        if not self.lost.done():
            self.lost.set_result(None)


async def serve(reply: bytes = b"") -> tuple[SimulatedServer, list[Recorder]]:
    """A listener at ``kafka``, and the server's side of each connection that it accepts."""
    accepted: list[Recorder] = []

    def accept() -> Recorder:
        accepted.append(Recorder(reply))
        return accepted[-1]

    server = await asyncio.get_running_loop().create_server(accept, "kafka", 0)
    assert isinstance(server, SimulatedServer)
    return server, accepted


async def connect(server: SimulatedServer) -> Recorder:
    _, protocol = await asyncio.get_running_loop().create_connection(Recorder, server.host, server.port)
    return protocol
