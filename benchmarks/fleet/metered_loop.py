"""Virtual time in which the producer's CPU time passes, and nothing else's."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.endpoint import Endpoint
from aioproducer.testing.simulation.network.network import Network
from benchmarks.fleet.cpu_meter import APPLICATION, LOOP, MODEL, PRODUCER, CpuMeter
from benchmarks.fleet.metered_transport import MeteredProtocol, MeteredTransport

P = TypeVar("P", bound=asyncio.BaseProtocol)

STEPS = 1_000_000_000
"""Turns beyond which a run is taken for one that will not end."""

LONG = 0.001
"""Seconds of a callback that is worth a name."""

_MODEL_MODULES = ("aioproducer.testing.simulation", "benchmarks.fleet")


class MeteredLoop(SimulatedLoop):
    """A simulated loop whose clock goes on by the CPU time that the producer takes.

    So a record waits for what the producer computes, as it would if the brokers had machines of their own, and the
    producer's time slices are real. ``turns`` has the producer's seconds in each turn of the loop, the garbage
    collector's excluded; ``long`` has the callbacks of more than LONG seconds. Steps of tasks in ``applications`` are
    in neither: how much an application sends at once is its own choice.
    """

    def __init__(self, random: Random, network: Network, meter: CpuMeter) -> None:
        self.meter = meter
        self.applications: set[asyncio.Task[Any]] = set()
        self.turns = array("d")
        self.long: list[tuple[float, str]] = []
        self._passed = 0.0
        """The producer's seconds that the clock has gone on by."""
        self._turn = 0.0
        super().__init__(random, network, max_steps=STEPS)
        self._longest_delay = 0.0

    def time(self) -> float:
        # The producer asks some fifteen times a request, and what asking takes is in its account: no calls in between.
        self._now += 1e-6
        return self._now + self.meter.producer() - self._passed

    exact_time = time

    @contextmanager
    def metered(self) -> Iterator[None]:
        """Within this block every callback has its owner."""
        handles: Any = asyncio.Handle
        run = handles._run
        meter = self.meter

        def timed(handle: Any) -> None:
            if handle._loop is not self:
                run(handle)
                return
            callback = handle._callback
            owner = self._owner_of(callback)
            began = meter.seconds[PRODUCER]
            meter.switch(owner)
            run(handle)
            meter.switch(LOOP)
            if (took := meter.seconds[PRODUCER] - began) > 0.0:
                self.hold(took)
                self._passed += took
                if owner != APPLICATION:
                    self._turn += took
                    if took > LONG:
                        self.long.append((took, _name(callback)))

        handles._run = timed
        try:
            with meter.watching_collector():
                yield
        finally:
            handles._run = run

    def _owner_of(self, callback: Any) -> int:
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, asyncio.Task):
            return APPLICATION if owner in self.applications else PRODUCER
        module = getattr(callback, "__module__", None) if owner is None else type(owner).__module__
        return MODEL if str(module).startswith(_MODEL_MODULES) else PRODUCER

    def _run_once(self) -> None:
        self._turn = 0.0
        base: Any = super()
        base._run_once()
        if self._turn > 0.0:
            self.turns.append(self._turn)

    async def _attach(self, endpoint: Endpoint, protocol: P) -> tuple[asyncio.Transport, P]:
        made: asyncio.Future[None] = self.create_future()
        transport = MeteredTransport(self, endpoint, MeteredProtocol(protocol, self.meter), made)
        try:
            await made
        except BaseException:
            transport.close()
            raise
        return transport, protocol


def _name(callback: Any) -> str:
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return owner.get_name()
    return getattr(callback, "__qualname__", None) or type(callback).__name__
