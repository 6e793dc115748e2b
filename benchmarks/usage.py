"""What a process has used so far."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def cpu_seconds(who: int = resource.RUSAGE_SELF) -> float:
    """User and kernel, of all threads."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def cpu_seconds_of(pid: int) -> float | None:
    """The same of another process that runs; None where nothing tells."""
    try:
        # Behind the name, which may have spaces and brackets in it.
        after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


def peak_rss() -> int:
    """The most memory this process ever had resident, in bytes."""
    if sys.platform == "linux":
        # ru_maxrss would be that of the process that started this one, if that was bigger.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return _maxrss(resource.RUSAGE_SELF)


def peak_rss_of_children() -> int:
    """The same of the largest child process that has ended."""
    return _maxrss(resource.RUSAGE_CHILDREN)


def _maxrss(who: int) -> int:
    maximum = resource.getrusage(who).ru_maxrss
    return maximum if sys.platform == "darwin" else maximum * 1024
