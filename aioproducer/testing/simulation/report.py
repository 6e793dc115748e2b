"""The report of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from aioproducer.testing.simulation.scenario import Scenario


@dataclass(slots=True)
class Report:
    """The violations, the counts and the trace of one seed."""

    scenario: Scenario
    violations: list[str]
    digest: str
    """The hash of the trace: equal for equal runs."""
    trace: list[str] = field(repr=False)
    records: int
    acknowledged: int
    transactions: int
    committed: int
    virtual_seconds: float
    steps: int

    @property
    def ok(self) -> bool:
        return not self.violations
