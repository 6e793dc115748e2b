"""A deterministic simulation of producers and brokers: the real producer and the real embedded broker on an event loop
with virtual time and a network in memory. One seed is one schedule, replayed identically, and no real second passes.

    from aioproducer.testing.simulation import simulate
    report = simulate(seed=17)
    assert report.ok, report.violations

    run.py               one seed, from its scenario to its report
    report.py            the violations, counts and trace of a seed
    drawing.py           draws the scenario of a seed
    scenario.py          all decisions of a run: cluster, configs, work, faults
    work_plan.py         the plans of users
    surroundings.py      the parts that a run shares
    loop.py              the event loop: virtual time, and a seed for everything that asyncio leaves open
    network.py           names, listeners, connections
    conditions.py        speed and sizes of the network
    endpoint.py          one end of a connection, as in the kernel
    transport.py, server.py, listening.py
                         asyncio's transports and servers, and a listening port, on this network
    faults.py            the kinds of faults, and where each applies
    chaos.py             faults of the whole cluster
    releases.py          the releases that brokers announce
    truncation.py        cuts off the end of a log
    vanished.py          records that were removed from logs
    producers.py         the producers of a run
    workload.py          users that send records
    application.py       users that work in transactions
    unit_work.py         users that work in units
    serializer.py        a serializer that sometimes fails
    interceptor.py       an interceptor that counts
    endings.py           how producers end
    ledger.py            every record, and its outcome
    transactions.py      every transaction, and its end
    invariants.py, transaction_invariants.py, unit_invariants.py
                         the checks after a run
    leftovers.py         checks that nothing is left on the loop
    log_watch.py         checks the package's log
    violations.py        the broken promises
    trace.py             the events of a run, and their hash
    stacks.py            the places where tasks wait

``python -m aioproducer.testing.simulate --seeds 300`` runs many seeds.
"""

from __future__ import annotations

from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults import KINDS
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.report import Report
from aioproducer.testing.simulation.run import play, simulate
from aioproducer.testing.simulation.scenario import Scenario

__all__ = ["KINDS", "Report", "Scenario", "SimulatedLoop", "draw", "play", "simulate"]
