"""The environment of a run: without it its figures mean nothing."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from aioproducer.producer.accumulator import record_accumulator


def is_compiled() -> bool:
    return record_accumulator.__file__.endswith(tuple(EXTENSION_SUFFIXES))


def free_threaded() -> bool:
    """Whether this Python was built to run without a GIL."""
    return bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def gil_enabled() -> bool:
    """Whether the GIL is on: an extension module that needs it switches it on where it was off."""
    enabled: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)  # from Python 3.13 on
    return enabled()


def aioproducer_build() -> str:
    """Which aioproducer is measured."""
    try:
        number = version("aioproducer")
    except PackageNotFoundError:
        number = "not installed, run from the checkout"
    return f"{number}, {'compiled' if is_compiled() else 'interpreted'}"


@dataclass(frozen=True)
class Environment:
    """The machine, the Python, the event loop and the broker.

    ``commit`` is the checkout's, with a plus where there is more than it. ``load`` is the load average before the first
    run, ``others`` the share of the machine's CPU time that went to anything but these runs, None if unknown;
    ``minutes`` is what all took, None before the end. ``build`` is the aioproducer that is measured alone, empty where
    it is one of several clients, which say what they are.
    """

    date: str
    commit: str
    machine: str
    system: str
    load: float
    python: str
    loop: str
    broker: str
    others: float | None = None
    minutes: float | None = None
    build: str = ""

    @classmethod
    def now(cls, *, loop: str, broker: str, alone: bool = True) -> Environment:
        """``alone``: aioproducer is not one of several clients."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(
            date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            commit=_commit(),
            machine=f"{_processor()}, {cores} cores, {memory / 2**30:.0f} GiB",
            system=f"{platform.system()} {platform.release()} {platform.machine()}",
            load=os.getloadavg()[0],
            python=_python(),
            loop="asyncio" if loop == "asyncio" else f"{loop} {version(loop)}",
            broker=broker,
            build=aioproducer_build() if alone else "",
        )

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for people."""
        took = [] if self.minutes is None else [("Took", f"{self.minutes:.1f} minutes")]
        return [
            ("Date", f"{self.date}, commit {self.commit}"),
            *took,
            ("Machine", f"{self.machine}; {self.system}"),
            ("Load before", f"{self.load:.2f}"),
            ("Busy with other things", "unknown" if self.others is None else f"{self.others:.0%} of the CPU time"),
            ("Python", f"{self.python}, {self.loop}"),
            ("Broker", self.broker),
            *([("aioproducer", self.build)] if self.build else []),
        ]


def _python() -> str:
    build = "free-threaded " if free_threaded() else ""
    return f"{build}{platform.python_implementation()} {platform.python_version()}"


def _commit() -> str:
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit.stdout.strip() + ("+" if changed.stdout else "")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists() and (found := re.search(r"^model name\s*:\s*(.+)$", information.read_text(), re.MULTILINE)):
        return " ".join(found[1].split())
    return platform.processor() or platform.machine()
