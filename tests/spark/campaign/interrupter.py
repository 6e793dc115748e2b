"""Carries out interruptions, each in its own way."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

from .driver_process import DriverProcess
from .plan import Interruption, Kind
from .standalone import Standalone, command_of, descendants

_LOOK_EVERY = 0.005


class Events:
    """What tasks and commits have written down since this was made."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "events"
        self._file.touch()
        self._begin = self._file.stat().st_size

    def lines(self) -> list[str]:
        return self._file.read_bytes()[self._begin :].decode().splitlines()

    def count(self, event: str) -> int:
        return sum(line.startswith(event) for line in self.lines())


class Interrupter:
    """For one cluster and its drivers."""

    def __init__(self, cluster: Standalone, directory: Path, dice: random.Random) -> None:
        self._cluster = cluster
        self._directory = directory
        self._dice = dice

    def wait_for(self, one: Interruption, events: Events, ended: Callable[[], bool]) -> bool:
        """Until it is its moment; False if the attempt has ended before."""
        while events.count(one.moment) < one.nth:
            if ended():
                return False
            time.sleep(_LOOK_EVERY)
        time.sleep(one.delay_ms / 1000)
        return not ended()

    def make(self, kind: Kind, driver: DriverProcess) -> bool:
        """False if there is nothing of this kind to be interrupted just now."""
        match kind:
            case Kind.DRIVER:
                driver.kill()
            case Kind.EXECUTOR:
                return self._kill(self._executors())
            case Kind.WORKER:
                return self._kill(self._python_workers())
            case Kind.STOP | Kind.CORES:
                driver.order(do="stop")
            case Kind.CANCEL:
                driver.order(do="cancel")
            case Kind.UPSTREAM | Kind.SPECULATION:
                return self._lay_out(kind)
        return True

    def withdraw(self, kind: Kind) -> bool:
        """Takes back trouble for the next task that reads rows, if none has had it."""
        try:
            (self._directory / kind.name).unlink()
        except FileNotFoundError:
            return False
        return True

    def _lay_out(self, kind: Kind) -> bool:
        """Trouble for the next task that reads rows; False if there is some already."""
        try:
            (self._directory / kind.name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _kill(self, processes: list[int]) -> bool:
        if not processes:
            return False
        try:
            os.kill(self._dice.choice(processes), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _executors(self) -> list[int]:
        below = [pid for worker in self._cluster.workers for pid in descendants(worker)]
        return [pid for pid in below if "CoarseGrainedExecutorBackend" in command_of(pid)]

    def _python_workers(self) -> list[int]:
        """The forks of the daemons that executors have started."""
        below = [pid for executor in self._executors() for pid in descendants(executor)]
        python = [pid for pid in below if "pyspark.daemon" in command_of(pid)]
        return [pid for daemon in python for pid in descendants(daemon)]
