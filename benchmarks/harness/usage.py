"""The resources that a process has used so far."""

from __future__ import annotations

import os
import re
import resource
import sys
from pathlib import Path

_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


def cpu_seconds(who: int = resource.RUSAGE_SELF) -> float:
    """User and kernel, of all threads."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def cpu_seconds_of(pid: int, *, ended_children: bool = False) -> float | None:
    """The same of another running process; None if the system does not report it.

    ``ended_children``: and of those that it has started and waited for.
    """
    try:
        # Behind the name, which may have spaces and brackets in it.
        after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, after[11 : 15 if ended_children else 13])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_of_threads(pid: int, name: str) -> float:
    """The same of the threads whose names begin so, on Linux; RuntimeError if there is none."""
    nanoseconds = [
        int((thread / "schedstat").read_text().split()[0])
        for thread in Path(f"/proc/{pid}/task").glob("*")
        if (thread / "comm").read_text().startswith(name)
    ]
    if not nanoseconds:
        raise RuntimeError(f"process {pid} has no thread {name}…")
    return sum(nanoseconds) / 1e9


def processes_of(pid: int) -> list[int]:
    """The process and all that it has started, and they in turn."""
    found, left = [], [pid]
    while left:
        one = left.pop()
        found.append(one)
        try:
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            left += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue  # it has ended meanwhile
    return found


def peak_rss() -> int:
    """The most memory this process ever had resident, in bytes."""
    # ru_maxrss would be that of the process that started this one, if that was bigger.
    peak = peak_rss_of(os.getpid())
    return _maxrss(resource.RUSAGE_SELF) if peak is None else peak


def peak_rss_of(pid: int) -> int | None:
    """The same of another process; None if the system does not report it."""
    status = Path(f"/proc/{pid}/status")
    found = _PEAK.search(status.read_text(encoding="ascii")) if status.exists() else None
    return None if found is None else int(found[1]) * 1024


def peak_rss_of_children() -> int:
    """The same of the largest child process that has ended."""
    return _maxrss(resource.RUSAGE_CHILDREN)


def _maxrss(who: int) -> int:
    maximum = resource.getrusage(who).ru_maxrss
    return maximum if sys.platform == "darwin" else maximum * 1024


def resident(what: str) -> float:
    """MiB of this process, as Linux reports them: ``VmRSS`` now, ``VmHWM`` at most until now."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    return int(lines[what].split()[0]) / 1024
