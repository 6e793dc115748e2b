"""Child processes that cannot outlive this one.

A test run ends in many ways: a failure, Ctrl-C, ``kill -9``, the machine's out-of-memory killer. A JVM left behind by
any of them holds half a gigabyte and a port. ``PR_SET_PDEATHSIG`` does not solve this: it fires when the *thread* that
forked ends, needs code between fork and exec, and exists on Linux only. So a small watcher process leads its own
process group and reads a pipe that never has data. The pipe ends when this process closes it or ends. The watcher
then kills its group and removes its directory.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

# A killed group includes the watcher, so a child that has left the group kills it and removes the directory.
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
    """A process group that is killed when the guard is closed, or when this process ends in any way.

    Then ``directory``, if given, is removed, too. All methods may be called from any thread.
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
        user: str | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a process in the group, as this ``user`` if one is given, which only root can.

        It joins the group before its program runs, so it can never escape.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError(f"the guard is closed: {command[0]} is not started")
            return subprocess.Popen(
                command,
                cwd=cwd,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                process_group=self._watcher.pid,
                user=user,
                extra_groups=None if user is None else [],
            )

    def close(self) -> None:
        """Kill all processes of the group. Callers of ``spawn`` must still ``wait()`` for their processes."""
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
