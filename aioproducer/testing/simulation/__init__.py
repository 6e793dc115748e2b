"""A deterministic simulation of producers and brokers: the real producer and the real embedded broker on an event loop
with virtual time and a network in memory. One seed is one schedule, replayed identically, and no real second passes.

    from aioproducer.testing.simulation import simulate
    report = simulate(seed=17)
    assert report.ok, report.violations

    loop.py         the event loop: virtual time, and a seed for what asyncio leaves open
    network.py      names, listeners, connections; conditions.py how good it is
    endpoint.py     one end of a connection, as the kernel has it; transport.py and server.py as asyncio has it
    scenario.py     what a seed stands for: cluster, configs, work, faults; drawing.py how it is drawn
    faults.py       what goes wrong where; chaos.py what happens to the cluster; releases.py what brokers say they are
    work_plan.py    what users are going to do
    serializer.py   a serializer that now and then fails
    workload.py     what the users of a producer do; ledger.py every record and what became of it;
                    interceptor.py what an interceptor is told of it
    application.py  what users of transactions do; transactions.py every transaction and what became of it
    truncation.py   a log that loses its end; vanished.py records that were in a log
    invariants.py   what must be true in the end; transaction_invariants.py of transactions; violations.py what was not
    trace.py        everything that happened, and its hash; stacks.py who waits for what
    surroundings.py all of this put together; producers.py the producers in it; endings.py how they are closed;
                    leftovers.py what is left then; log_watch.py what was logged
    run.py          one seed from beginning to end; report.py what came of it

``python -m aioproducer.testing.simulate --seeds 300`` runs many.
"""

from __future__ import annotations

from aioproducer.testing.simulation.drawing import draw
from aioproducer.testing.simulation.faults import KINDS
from aioproducer.testing.simulation.loop import SimulatedLoop
from aioproducer.testing.simulation.report import Report
from aioproducer.testing.simulation.run import play, simulate
from aioproducer.testing.simulation.scenario import Scenario

__all__ = ["KINDS", "Report", "Scenario", "SimulatedLoop", "draw", "play", "simulate"]
