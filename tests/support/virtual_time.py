"""Tests in virtual time, on the simulation's loop and network: ten minutes of an outage take no time.

A hang ends such a test at once, as there is nothing left that could ever happen.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from aioproducer.testing.simulation.conditions import Conditions
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.network import Address, Fate, Network, NetworkFaults
from aioproducer.testing.simulation.trace import Trace


class World(NetworkFaults):
    """The network: to hosts in ``silent`` no connection is ever made, as behind a firewall. Counts attempts.

    Until ``hung_until`` (the loop's time) nothing gets to or from any server; what is under way arrives then.
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
    """Makes a coroutine, whose first parameter (behind ``self``) is ``world``, a test that runs in virtual time and
    leaves no task."""

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

    # What pytest fills in by name is everything but the world.
    signature = inspect.signature(test)
    kept = [parameter for name, parameter in signature.parameters.items() if name != "world"]
    run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return run
