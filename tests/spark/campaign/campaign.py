"""One life of a standalone cluster: writes, one after the other, that are interrupted until none is left to be made."""

from __future__ import annotations

import asyncio
import os
import platform
import queue
import random
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyspark

import aioproducer
from aioproducer import errors
from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.spark.exactly_once import decision, marker, prepared, write_once
from aioproducer.spark.sink import whole_input
from aioproducer.testing.kafka.kafka_libs import DEFAULT_VERSION
from tests.spark.foreign import values

from .driver_process import DriverGone, DriverProcess
from .interrupter import Events, Interrupter
from .plan import ENDS_ATTEMPT, Interruption, Kind, Mode, Moment, interruptions, modes
from .report import Interrupted, Run
from .standalone import CORES, HOSTS, Standalone
from .watched import DIRECTORY

PARTITIONS = 4
ROWS = 240
"""Of a file."""

FILES = {Mode.STREAM: 4, Mode.BATCH: 1, Mode.FOREACH: 2}
"""Of a write, at most; each is a batch, or an epoch of a stream."""

_ATTEMPT = 900
"""Seconds for an attempt; one that takes longer is stuck."""

_IN_A_ROW = 4
"""Attempts of a write that are interrupted, before one is left in peace."""

_AT_MOST = 4
"""Interruptions of an attempt."""

_PEACEFUL = 3
"""Attempts that may fail although nothing interrupts them: what was interrupted before may have to be waited for."""

_SAME_PARTITIONS = re.compile(r"with the same ([0-9]+) partitions")
_OF_SINK = {
    one.__name__
    for module in (decision, errors, marker, prepared, whole_input, write_once)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, errors.KafkaError)
}
_ERROR = re.compile(r"\b[A-Za-z]*(?:Exception|Error)\b(?=: )")


class Campaign:
    """The writes of one life."""

    def __init__(
        self, servers: str, cluster: Standalone, directory: Path, environment: dict[str, str], seed: int, number: int,
        report_progress: Callable[[str], object],
    ) -> None:  # fmt: skip
        self.run = Run(seed, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", _versions())
        self._topic = f"campaign-{seed}"
        self._servers = servers
        self._cluster = cluster
        self._directory = directory
        self._environment = environment
        self._dice = random.Random(seed)
        self._left = deque(interruptions(seed, number))
        self._interrupter = Interrupter(cluster, directory, self._dice)
        self._report_progress = report_progress
        self._driver: DriverProcess | None = None
        self._drivers: list[DriverProcess] = []
        self._numbers: Counter[Mode] = Counter()
        self._expected: set[str] = set()
        self._begun = time.monotonic()

    def write_all(self, until: float) -> Run:
        """Until all interruptions are made, or it is that time (of ``time.monotonic``); then everybody is judged."""
        asyncio.run(self._make_topic())
        everything = Events(self._directory)
        try:
            for mode in modes():
                if not self._left or time.monotonic() > until or self.run.stuck:
                    break
                self._write(mode)
            if not self.run.stuck:
                self._left.clear()
                for mode in Mode:  # the driver of an epoch ends what is left of those before
                    self._write(mode)
        finally:
            for driver in self._drivers:
                driver.close()
        self._judge(everything)
        return self.run

    def _write(self, mode: Mode) -> None:
        """One write, until it is completed or stuck."""
        number = self._new_input(mode)
        partitions = self._dice.randint(2, 4)
        interrupted = peaceful = 0
        while True:
            wanted = self._next() if interrupted < _IN_A_ROW else []
            error, made = self._attempt(mode, number, partitions, wanted)
            self.run.attempts += 1
            self._left += [replace(one, nth=1) for one in wanted if one not in made]
            self.run.interrupted += [Interrupted(one.kind, one.moment, mode, error and _name(error)) for one in made]
            if error is None:
                self.run.writes += 1
                return
            interrupted += bool(made)
            peaceful += not made
            kinds = ", ".join(one.kind for one in made) or "not interrupted"
            self._report_progress(f"{mode} {number}: {kinds}: {_name(error)}")
            if peaceful > _PEACEFUL:
                self.run.stuck.append(f"{mode} {number}: {error[-3000:]}")
                return
            partitions = _wanted_partitions(error) or self._dice.choice((partitions, self._dice.randint(2, 4)))

    def _next(self) -> list[Interruption]:
        """Those of an attempt: a few, of which only the last one may end it."""
        wanted: list[Interruption] = []
        while self._left and len(wanted) < _AT_MOST and not (wanted and wanted[-1].kind in ENDS_ATTEMPT):
            wanted.append(self._left.popleft())
        return wanted

    def _attempt(
        self, mode: Mode, number: int, partitions: int, wanted: Sequence[Interruption]
    ) -> tuple[str | None, list[Interruption]]:
        """What it failed of, None if it succeeded; and the interruptions that were made."""
        driver = self._running_driver()
        answers: list[str | None] = []

        def ended(seconds: float = 0.001) -> bool:
            try:
                if not answers:
                    answers.append(driver.answer(seconds)["ended"])
            except queue.Empty:
                return False
            except DriverGone as gone:
                answers.append(f"DriverGone: {gone}")
            return True

        made = []
        events = Events(self._directory)
        try:
            driver.order(do="run", mode=mode, number=number, partitions=partitions)
            for one in wanted:
                events = Events(self._directory)
                if not self._interrupter.wait_for(one, events, ended):
                    break
                if self._interrupter.make(one.kind, driver):
                    made.append(one)
        except DriverGone as gone:
            answers.append(f"DriverGone: {gone}")
        if not ended(_ATTEMPT):
            self.run.stuck.append(f"{mode} {number} has not ended after {_ATTEMPT} s: {events.lines()[-20:]}")
            return None, made
        made = [one for one in made if not self._interrupter.withdraw(one.kind)]
        kinds = {one.kind for one in made}
        error = answers[0]
        if error is None and kinds & {Kind.STOP, Kind.CORES} and mode is not Mode.BATCH:
            error = "stopped: it may have been before all was written"
        if Kind.CORES in kinds or (error or "").startswith("DriverGone"):
            self._dismiss(leave=Kind.CORES in kinds)
        return error, made

    def _running_driver(self) -> DriverProcess:
        if self._driver is None:
            cores = self._dice.randint(2, CORES * len(HOSTS))
            self._report_progress(f"a driver with {cores} cores; {len(self._left)} interruptions to be made")
            arguments = (self._cluster.master, self._servers, self._topic, str(cores))
            self._driver = DriverProcess(self._environment, self._directory, *arguments)
            self._drivers.append(self._driver)
        return self._driver

    def _dismiss(self, *, leave: bool) -> None:
        """A new one is started for the next attempt. What the old one has started may live on for a moment."""
        if self._driver is not None and leave:
            try:
                self._driver.order(do="leave")
                self._driver.answer(60)
            except (DriverGone, queue.Empty):
                pass
        self._driver = None

    def _new_input(self, mode: Mode) -> int:
        """Rows that only this write has."""
        place = self._directory / mode.name
        place.mkdir(exist_ok=True)
        for _ in range(self._dice.randint(1, FILES[mode])):
            number = self._numbers[mode]
            self._numbers[mode] += 1
            rows = [f"{mode}/{number}/{row}" for row in range(ROWS)]
            self._expected.update(rows)
            draft = place / f"_{number}"
            draft.write_text("".join(f"{row.ljust(200, '.')}\n" for row in rows))
            draft.rename(place / f"{number}.txt")
        return number

    def _judge(self, everything: Events) -> None:
        run = self.run
        run.copies = sum(line.startswith(Moment.BEGUN) and not line.endswith(" 0") for line in everything.lines())
        run.rows = len(self._expected)
        if not run.stuck:
            found = Counter(value.rstrip(".") for value in values(self._servers, self._topic, PARTITIONS))
            run.missing = sorted(self._expected - found.keys())
            run.twice = sorted(row for row, times in found.items() if times > 1)
            run.unexpected = sorted(found.keys() - self._expected)
            run.left_open = asyncio.run(self._open())
        run.seconds = round(time.monotonic() - self._begun, 1)

    async def _make_topic(self) -> None:
        async with KafkaAdmin(bootstrap_servers=self._servers) as admin:
            await admin.create_topic(NewTopic(self._topic, PARTITIONS, 1))

    async def _open(self) -> list[str]:
        async with KafkaAdmin(bootstrap_servers=self._servers) as admin:
            return await admin.list_transactions(states=["Ongoing"])


def environment_of(directory: Path) -> dict[str, str]:
    """For all of Spark's processes: this checkout, this interpreter, and where to leave files."""
    root = str(Path(aioproducer.__file__).parents[1])
    here = str(Path(__file__).parents[3])
    return {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([root, here])),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        DIRECTORY: str(directory),
    }


def _wanted_partitions(error: str) -> int | None:
    """The number of partitions that the error names."""
    found = _SAME_PARTITIONS.search(error)
    return int(found[1]) if found else None


def _name(error: str) -> str:
    """That of the sink's error in a text, or else of the last one."""
    if error.startswith(("DriverGone", "stopped")):
        return "the driver was killed" if error.startswith("DriverGone") else "the query was stopped"
    names = _ERROR.findall(error)
    of_sink = [name for name in names if name in _OF_SINK]
    return next(reversed([*names, *of_sink]), error.strip().splitlines()[-1][:80])


def _versions() -> str:
    python = ".".join(map(str, sys.version_info[:3]))
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"PySpark {pyspark.__version__}, Kafka {DEFAULT_VERSION}, Python {python}; {machine}"
