"""Tests in virtual time, on the simulation's loop and network: ten minutes of an outage take no time.

A test that hangs ends at once, because no event is left.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.network.network import Address, Fate, Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace


class World(NetworkFaults):
    """The faults of the network, with a count of attempts. Hosts in ``silent`` never answer, as behind a firewall.

    Until ``hung_until`` (the loop's time) no server can be reached; bytes under way arrive then.
    """

    def __init__(self) -> None:
        self.silent: set[str] = set()
        self.attempts = 0
        self.hung_until = 0.0

    def connecting(self, host: str) -> Fate:
        self.attempts += 1
        return Fate.LOST if host in self.silent else Fate.ARRIVE

    def unreachable_until(self, server: Address) -> float:
        return self.hung_until


VirtualTest = Callable[..., Coroutine[Any, Any, None]]


def virtual(test: VirtualTest) -> Callable[..., None]:
    """Turns a coroutine into a test in virtual time, which must leave no task. The first parameter (after ``self``) is
    ``world``."""

    async def checked(*owner: object, world: World, **fixtures: Any) -> None:
        await test(*owner, world, **fixtures)
        await asyncio.sleep(1)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks left behind: {left}"

    @functools.wraps(test)
    def run(*owner: object, **fixtures: Any) -> None:
        world, random = World(), Random(0)
        network = Network(random, Conditions(), world, Trace())

        def make_loop() -> SimulatedLoop:
            return SimulatedLoop(random, network, max_steps=5_000_000)

        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(checked(*owner, world=world, **fixtures))
        assert not network.open, "connections left open"

    # pytest must see all parameters except the world.
    signature = inspect.signature(test)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "world"]
    run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return run
