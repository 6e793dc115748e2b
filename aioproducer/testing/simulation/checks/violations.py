"""The broken promises of a run."""

from __future__ import annotations

from aioproducer.testing.simulation.trace import Trace


class Violations:
    """A line for each broken promise, which begins with the promise. ``slack`` is the number of seconds by which
    everything may be late, because timers fire late and the loop is held up."""

    def __init__(self, trace: Trace, slack: float) -> None:
        self.found: list[str] = []
        self._trace = trace
        self._slack = slack

    def add(self, promise: str, what: object) -> None:
        self._trace("VIOLATION", promise, what)
        self.found.append(f"{promise}: {what}")

    def in_time(self, what: str, began: float, ended: float, allowed: float) -> None:
        if ended - began > allowed + self._slack:
            self.add("nothing takes longer than its time-out", f"{what} took {ended - began:.3f} s of {allowed:.3f} s")
