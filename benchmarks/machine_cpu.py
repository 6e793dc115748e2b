"""How busy the machine was with anything else while the benchmarks ran: what most often spoils their figures."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path


class MachineCpu:
    """Watches the machine's CPU time and this process tree's from when it is made."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._total, self._own = _total(), _own()

    def others(self) -> float | None:
        """The share of all CPU time since then that was spent outside this process tree; None where nothing tells.

        Of child processes only those count as own that have ended and were waited for.
        """
        now = _total()
        if now is None or self._total is None:
            return None
        spent = now - self._total - (_own() - self._own)
        return max(0.0, spent) / ((time.monotonic() - self._started) * (os.cpu_count() or 1))


def _total() -> float | None:
    """Seconds that all CPUs together have been busy."""
    if sys.platform != "linux":
        return None
    with Path("/proc/stat").open() as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
