from __future__ import annotations

from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.trace import Trace


def test_a_violation_names_the_promise_and_is_in_the_trace() -> None:
    trace = Trace(keep=True)
    violations = Violations(trace, slack=0.1)
    violations.add("no task is left", ["one"])
    assert violations.found == ["no task is left: ['one']"]
    assert trace.lines == ["0.000000 VIOLATION no task is left ['one']"]


def test_in_time_is_within_the_time_out_and_the_slack() -> None:
    violations = Violations(Trace(), slack=0.1)
    violations.in_time("flush", 10.0, 11.05, 1.0)
    assert violations.found == []
    violations.in_time("flush", 10.0, 11.2, 1.0)
    assert violations.found == ["nothing takes longer than its time-out: flush took 1.200 s of 1.000 s"]
