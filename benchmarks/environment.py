"""Where figures come from: without it they mean nothing."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def best_loop() -> str:
    """uvloop where it is installed, else asyncio's own."""
    return "asyncio" if importlib.util.find_spec("uvloop") is None else "uvloop"


@dataclass(frozen=True)
class Environment:
    """The machine, the Python, the event loop and the broker.

    ``load`` is the load average before the first run, ``others`` the share of the machine's CPU time that went to
    anything but these runs, None where nothing tells.
    """

    date: str
    machine: str
    system: str
    load: float
    python: str
    loop: str
    broker: str
    others: float | None = None

    @classmethod
    def now(cls, *, loop: str, broker: str) -> Environment:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(
            date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            machine=f"{_processor()}, {cores} cores, {memory / 2**30:.0f} GiB",
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
            load=os.getloadavg()[0],
            python=f"{platform.python_implementation()} {platform.python_version()}",
            loop="asyncio" if loop == "asyncio" else f"{loop} {version(loop)}",
            broker=broker,
        )

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for people."""
        return [
            ("Date", self.date),
            ("Machine", f"{self.machine}; {self.system}"),
            ("Load before", f"{self.load:.2f}"),
            ("Busy with other things", "unknown" if self.others is None else f"{self.others:.0%} of the CPU time"),
            ("Python", f"{self.python}, {self.loop}"),
            ("Broker", self.broker),
        ]


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists() and (found := re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.MULTILINE)):
        return " ".join(found[1].split())
    return platform.processor() or platform.machine()
