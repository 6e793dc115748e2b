"""The parts that a scenario runs on: a cluster on a network in memory, a loop, the ledgers and the trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.simulation.checks.invariants import BatchWatch, WireWatch, check_end
from aioproducer.testing.simulation.checks.ledger import Ledger
from aioproducer.testing.simulation.checks.transactions import TransactionLedger
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.faults.faults import SimulatedFaults
from aioproducer.testing.simulation.listening import listen_on_network
from aioproducer.testing.simulation.loop import SimulatedClock, SimulatedLoop
from aioproducer.testing.simulation.network.network import Network
from aioproducer.testing.simulation.releases import NEWEST, Releases
from aioproducer.testing.simulation.scenario import Scenario, stream
from aioproducer.testing.simulation.trace import Trace

HOST = "kafka"

COMPUTING = 0.0006
"""Seconds between two looks at the clock on a slow machine: longer than a time slice."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts that everything in a run shares."""

    scenario: Scenario
    trace: Trace
    violations: Violations
    faults: SimulatedFaults
    network: Network
    loop: SimulatedLoop
    clock: SimulatedClock
    cluster: EmbeddedCluster
    ledger: Ledger
    transactions: TransactionLedger

    @staticmethod
    def of(scenario: Scenario, *, keep_trace: bool) -> Surroundings:
        """Creates the parts of a run; no node of the cluster is started yet."""
        seed = scenario.seed
        trace = Trace(keep=keep_trace)
        stalls = scenario.rates.get("stalls", 0.0) / 10
        violations = Violations(trace, slack=1.5 if scenario.slow else 1.0 if stalls else 0.05)
        upgrades = "upgrades" in scenario.rates
        faults = SimulatedFaults(
            stream(seed, "faults"), scenario.rates, scenario.milliseconds("request_timeout_ms"), trace
        )
        faults.labour = scenario.labour
        faults.expiry = scenario.expiry
        faults.may_read = scenario.may_read
        if scenario.ample:
            faults.for_good = 0.0
        faults.releases = Releases(scenario.release if upgrades else NEWEST, upgrades=upgrades)
        faults.on_too_new = partial(violations.add, "requests have versions that their broker supports")
        faults.on_batch = BatchWatch(violations)
        network = Network(stream(seed, "network"), scenario.conditions, faults, trace)
        network.watch = WireWatch(scenario, violations)
        loop = SimulatedLoop(
            stream(seed, "loop"),
            network,
            stalls=stalls,
            collects=scenario.collects,
            coarse=scenario.coarse,
            computing=COMPUTING if scenario.slow else 0.0,
        )
        faults.now = loop.exact_time
        began = loop.now
        trace.clock = lambda: loop.now - began
        clock = SimulatedClock(loop, faults.clock_jump)
        cluster = EmbeddedCluster(
            scenario.nodes,
            host=HOST,
            racks=scenario.racks,
            configs={**scenario.broker_configs, "default.replication.factor": scenario.replication},
            clock=clock,
            newest_versions=NEWEST if upgrades else scenario.release,
            old_nodes=scenario.old_nodes,
            transaction_version=scenario.transaction_version,
            random=stream(seed, "cluster"),
            faults=faults,
            listen=listen_on_network,
        )
        faults.transaction = cluster._transactions.transaction
        ledger = Ledger(loop.exact_time, trace)
        if not scenario.reuses_offsets:
            ledger.on_end = lambda entry: check_end(entry, cluster, violations)
        transactions = TransactionLedger(trace)
        return Surroundings(scenario, trace, violations, faults, network, loop, clock, cluster, ledger, transactions)

    @property
    def recovery(self) -> float:
        """Seconds after the faults within which everything works again: back-offs may have become long."""
        return 30 + 3 * self.scenario.milliseconds("socket_connection_setup_timeout_max_ms")

    def closed_in_time(self, began: float, allowed: float | None = None, *, calls: int = 1, times: int = 1) -> None:
        """Checks that ``close`` has ended within ``allowed`` seconds, or in the time of the work that it waits for: its
        records, which may have their time this often, and this many calls to the coordinator, one after the other."""
        if allowed is None:
            milliseconds = self.scenario.milliseconds
            allowed = calls * milliseconds("max_block_ms")
            allowed += times * milliseconds("delivery_timeout_ms") + milliseconds("request_timeout_ms")
        self.violations.in_time("close", began, self.loop.exact_time(), allowed)
