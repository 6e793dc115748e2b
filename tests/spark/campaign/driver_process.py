"""The driver's process, as the campaign sees it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aioproducer.testing.process_guard import ProcessGuard

from .standalone import command_of, descendants

_START = 180
"""Seconds for the start of a session."""


class DriverGone(Exception):
    """The process has ended."""


class DriverProcess:
    """Returns from its constructor when the session is there."""

    def __init__(self, environment: Mapping[str, str], directory: Path, *arguments: str) -> None:
        self._guard = ProcessGuard()
        settings = [f"{name}={value}" for name, value in environment.items()]
        command = ["/usr/bin/env", *settings, sys.executable, "-m", "tests.spark.campaign.driver", *arguments]
        with (directory / "driver.log").open("ab") as log:
            self._process = self._guard.spawn(
                command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        try:
            self.answer(_START)
        except BaseException:
            self.close()
            raise

    def order(self, **order: object) -> None:
        """DriverGone if the driver does not answer any more."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise DriverGone(str(error)) from error

    def answer(self, seconds: float) -> dict[str, Any]:
        """The next one; DriverGone if none comes any more, queue.Empty if none comes in this time."""
        found = self._answers.get(timeout=seconds)
        if found is None:
            self._answers.put(None)
            raise DriverGone(f"the driver has ended with status {self._process.wait()}")
        return found

    def kill(self) -> None:
        """Python and its JVM. What that has started, such as the process that commits, may live on for a moment."""
        mine = [pid for pid in descendants(self._process.pid) if "java" in command_of(pid).partition(" ")[0]]
        for pid in (*mine, self._process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def close(self) -> None:
        """Whatever is left of it is killed."""
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:
                pass
        self._guard.close()
        self._process.wait()
        self._thread.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)
