"""A deterministic simulation of producers and brokers: the real producer and the real embedded broker on an event loop
with virtual time and a network in memory. One seed is one schedule, replayed identically, and no real second passes.

    from aioproducer.testing.simulation import simulate
    report = simulate(seed=17)
    assert report.ok, report.violations

    run.py           one seed, from its scenario to its report
    report.py        the violations, counts and trace of a seed
    drawing.py       draws the scenario of a seed
    scenario.py      all decisions of a run: cluster, configs, work, faults
    work_plan.py     the plans of users
    releases.py      the releases that brokers announce
    surroundings.py  the parts that a run shares
    loop.py          the event loop: virtual time, and a seed for everything that asyncio leaves open
    network/         the network in memory
    listening.py     a listening port on this network
    faults/          what strikes connections, brokers, logs and the cluster
    users/           producers, and the tasks that use them
    checks/          every record and transaction, and the invariants at the end
    log_watch.py     checks the package's log
    leftovers.py     checks that nothing is left on the loop
    trace.py         the events of a run, and their hash
    stacks.py        the places where tasks wait

``python -m aioproducer.testing.simulate --seeds 300`` runs many seeds.
"""

from __future__ import annotations

from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults.faults import KINDS
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.report import Report
from aioproducer.testing.simulation.run import play, simulate
from aioproducer.testing.simulation.scenario import Scenario

__all__ = ["KINDS", "Report", "Scenario", "SimulatedLoop", "draw", "play", "simulate"]
