"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from aioproducer.testing.simulation.scenario import Scenario


@dataclass(slots=True)
class Report:
    """What came of a seed."""

    scenario: Scenario
    violations: list[str]
    digest: str
    """Of the trace: equal for equal runs."""
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
