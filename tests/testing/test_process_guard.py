from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aioproducer.testing.process_guard import ProcessGuard

SLEEP = ["sleep", "1000"]


def test_close_kills_what_is_left(tmp_path: Path) -> None:
    with ProcessGuard() as guard:
        processes = [guard.spawn(SLEEP, cwd=tmp_path) for _ in range(2)]
        # A stopped process reacts only to SIGKILL.
        processes[0].send_signal(signal.SIGSTOP)
    assert [process.wait() for process in processes] == [-signal.SIGKILL] * 2


def test_closed_guard_starts_nothing(tmp_path: Path) -> None:
    guard = ProcessGuard()
    guard.close()
    guard.close()
    with pytest.raises(RuntimeError, match="the guard is closed: sleep is not started"):
        guard.spawn(SLEEP, cwd=tmp_path)


def test_the_end_of_a_thread_is_not_the_end(tmp_path: Path) -> None:
    spawned: list[subprocess.Popen[bytes]] = []
    with ProcessGuard() as guard:
        thread = threading.Thread(target=lambda: spawned.append(guard.spawn(SLEEP, cwd=tmp_path)))
        thread.start()
        thread.join()
        assert spawned[0].poll() is None
    assert spawned[0].wait() == -signal.SIGKILL


def test_nothing_is_left_of_a_killed_process(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    script = f"""
import os, pathlib, signal
from aioproducer.testing.process_guard import ProcessGuard
guard = ProcessGuard(pathlib.Path({str(directory)!r}))
guard.spawn({SLEEP!r}, cwd=pathlib.Path({str(directory)!r}), stdout=1)
os.kill(os.getpid(), signal.SIGKILL)
"""
    # The sleeping process holds the pipe for output, and the guard's watcher the pipe for errors, so each pipe ends
    # with its process.
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=30)
    assert (killed.returncode, killed.stdout, killed.stderr) == (-signal.SIGKILL, b"", b"")
    assert not directory.exists()
