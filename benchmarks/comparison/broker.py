"""Where the runs of a client go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.harness.metered_line import MeteredLine


@dataclass(frozen=True)
class Broker:
    """``cpu()`` is the CPU time that it has used so far, in seconds; None if unknown. ``line`` leads to it, if there is
    any: only while a client is measured it is as long as the work says."""

    bootstrap_servers: str
    cpu: Callable[[], float | None] = lambda: None
    line: MeteredLine | None = None


BrokerOf = Callable[[str], Broker]
"""By the name of the client."""
