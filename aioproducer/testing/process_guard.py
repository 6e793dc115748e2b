"""Child processes that cannot outlive this one.

A test run ends in many ways: a failure, Ctrl-C, ``kill -9``, the machine's out-of-memory killer. A JVM left behind by
any of them holds half a gigabyte and a port. ``PR_SET_PDEATHSIG`` would be the kernel's answer, but it fires when the
*thread* that forked ends, needs code between fork and exec, and exists on Linux only. So a small watching process
leads a process group of its own and reads a pipe that nobody ever writes to; the pipe ends when whoever holds the
other end closes it or is no more, and then the watcher kills its group and removes the directory it was given.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

# A killed group includes the watcher, so a child that has left the group does the killing and clears up after it.
_WATCH = """
import os, shutil, signal, sys, time
sys.stdin.buffer.read()
group = os.getpgrp()
if os.fork():
    signal.pause()
os.setpgid(0, 0)
os.killpg(group, signal.SIGKILL)
for directory in sys.argv[1:]:
    for _ in range(50):
        shutil.rmtree(directory, ignore_errors=True)
        if not os.path.exists(directory):
            break
        time.sleep(0.1)
"""


class ProcessGuard:
    """A process group that is killed when the guard is closed and when this process ends, however it ends.

    ``directory``, if given, is removed then, too. All methods may be called from any thread.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH, *([str(directory)] if directory else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            process_group=0,
        )
        self._closed = False

    def spawn(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        stdout: int | IO[bytes] = subprocess.DEVNULL,
        stderr: int | IO[bytes] = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Start a process inside the group: it is in before its program runs, so there is no moment to get lost in."""
        with self._lock:
            if self._closed:
                raise RuntimeError(f"the guard is closed: {command[0]} is not started")
            return subprocess.Popen(
                command, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, process_group=self._watcher.pid
            )

    def close(self) -> None:
        """Kill whatever is left in the group. What was spawned still wants its ``wait()`` from whoever spawned it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            assert self._watcher.stdin is not None
            self._watcher.stdin.close()
            try:
                self._watcher.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._watcher.kill()
                self._watcher.wait()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
