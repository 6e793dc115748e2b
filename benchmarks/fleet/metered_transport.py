"""The border between the producer and the network: each call across it changes whose CPU time it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from aioproducer.testing.simulation.network.transport import Data, SimulatedTransport
from benchmarks.fleet.cpu_meter import MODEL, PRODUCER, CpuMeter


class MeteredProtocol(asyncio.BufferedProtocol):
    """Calls the producer's protocol in the producer's time."""

    def __init__(self, protocol: asyncio.BaseProtocol, meter: CpuMeter) -> None:
        assert isinstance(protocol, asyncio.BufferedProtocol)
        self.meter = meter
        self._protocol = protocol
        self.get_buffer = protocol.get_buffer  # type: ignore[method-assign]  # as good as free

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        with self.meter.of(PRODUCER):
            self._protocol.connection_made(transport)

    def buffer_updated(self, nbytes: int) -> None:
        before = self.meter.switch(PRODUCER)
        self._protocol.buffer_updated(nbytes)
        self.meter.switch(before)

    def eof_received(self) -> bool | None:
        with self.meter.of(PRODUCER):
            return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        with self.meter.of(PRODUCER):
            self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        with self.meter.of(PRODUCER):
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        with self.meter.of(PRODUCER):
            self._protocol.resume_writing()


class MeteredTransport(SimulatedTransport):
    """Writes in the model's time, and in one piece, as one system call would."""

    def _put(self, parts: Iterable[Data]) -> None:
        meter = self._loop.meter
        before = meter.switch(MODEL)
        super()._put([b"".join(parts)])
        meter.switch(before)
