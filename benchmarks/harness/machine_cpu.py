"""CPU time of other processes during a benchmark: the most frequent cause of wrong figures."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

from benchmarks.harness.usage import cpu_seconds, cpu_seconds_of, processes_of


class MachineCpu:
    """Watches the machine's CPU time and this process tree's from when it is made."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._total, self._own = _total(), own_seconds()

    def others(self) -> float | None:
        """The share of all CPU time since then that was spent outside this process tree; None if unknown.

        Own are all processes that run and were started here, and those that have ended and were waited for: ask while
        there still are those for which nobody will wait, such as Spark's JVM.
        """
        now = _total()
        if now is None or self._total is None:
            return None
        spent = now - self._total - (own_seconds() - self._own)
        return max(0.0, spent) / ((time.monotonic() - self._started) * (os.cpu_count() or 1))


def _total() -> float | None:
    """Seconds that all CPUs together have been busy."""
    if sys.platform != "linux":
        return None
    with Path("/proc/stat").open() as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Of this process, of those that it has waited for, and of those that run, with theirs."""
    _, *started = processes_of(os.getpid())
    running = sum(cpu_seconds_of(pid, ended_children=True) or 0.0 for pid in started)
    return cpu_seconds() + cpu_seconds(resource.RUSAGE_CHILDREN) + running
