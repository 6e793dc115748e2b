"""``python -m benchmarks back-pressure``: tasks that await ``send``, more than there is memory for.

Each case runs in a process of its own, whose resident memory is measured; the broker is in another one, and keeps
nothing. A task awaits one record. All tasks begin at once, and none of their records may fail.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aioproducer import KafkaProducer
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.discarding_broker import REACHED, UNREACHED, discarding_broker
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.processes import python_command
from benchmarks.harness.usage import resident

MIB = 1 << 20
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Case:
    """Tasks that each send values of one size."""

    name: str
    title: str
    tasks: int
    size: int
    buffer_mib: int = 32
    known: bool = False
    """The producer has metadata before they begin."""
    cancelled: bool = False
    """Every second one is cancelled while no memory comes back."""


CASES: Final = {
    case.name: case
    for case in (
        Case("little", "1,000 B, `buffer.memory` of 1 MiB", 40_000, 1000, buffer_mib=1, known=True),
        Case("starting", "100 B, all defaults, without metadata", 20_000, 100),
        Case("many", "1,000 B, `buffer.memory` of 32 MiB", 100_000, 1000, known=True),
        Case(
            "cancelled",
            "1,000 B, 1 MiB, every second one cancelled",
            40_000,
            1000,
            buffer_mib=1,
            known=True,
            cancelled=True,
        ),
    )
}
ENDS: Final = {"RecordMetadata": "delivered", "CancelledError": "cancelled", "pending": "waiting"}
"""What a task ended with, in words; anything else is an error."""

TARGETS: Final = {False: "all are delivered", True: "none ends but those that are cancelled"}


@dataclass(frozen=True)
class Figures:
    """What came of a case. Memory in MiB; ``ends`` counts the tasks by what they ended with."""

    case: str
    tasks: int
    ends: dict[str, int]
    before: float
    peak: float
    cpu: float
    """Seconds of CPU, from the first task's beginning to the last one's end."""

    def wanted(self) -> dict[str, int]:
        """How the tasks should end."""
        if CASES[self.case].cancelled:
            return {"CancelledError": self.tasks // 2, "pending": self.tasks - self.tasks // 2}
        return {"RecordMetadata": self.tasks}

    def ended(self) -> str:
        return ", ".join(f"{count:,} {ENDS.get(end, end)}" for end, count in self.ends.items())

    @property
    def per_task(self) -> float:
        """Bytes of resident memory."""
        return (self.peak - self.before) * MIB / self.tasks


@dataclass(frozen=True)
class Report:
    """All cases."""

    environment: Environment
    figures: Sequence[Figures]

    def verdicts(self) -> list[Verdict]:
        return [
            Verdict(f"`{one.case}`: {TARGETS[CASES[one.case].cancelled]}", one.ended(), one.ends == one.wanted())
            for one in self.figures
        ]

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = ["| case | tasks | | resident before, MiB | at most | bytes a task | CPU, s |"]
        lines += ["|---|---:|---|---:|---:|---:|---:|"]
        for one in self.figures:
            figures = f"{one.before:.0f} | {one.peak:.0f} | {one.per_task:,.0f} | {one.cpu:.1f}"
            lines.append(f"| `{one.case}` | {one.tasks:,} | {CASES[one.case].title} | {figures} |")
        return [*lines, "", *Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


async def run(case: Case, servers: str) -> Figures:
    """In this process, which is to do nothing else."""
    value, ends = bytes(case.size), Counter[str]()
    topic = UNREACHED if case.cancelled else REACHED  # whose leader never answers

    async def send(producer: KafkaProducer) -> None:
        try:
            ends[type(await producer.send(topic, value)).__name__] += 1
        except BaseException as error:
            ends[type(error).__name__] += 1

    config: dict[str, Any] = {"buffer_memory": case.buffer_mib * MIB, "max_block_ms": 600_000}
    async with KafkaProducer(bootstrap_servers=servers, **config) as producer:
        if case.known:
            await producer.partitions_for(topic)
        gc.collect()
        before, began = resident("VmRSS"), time.process_time()
        tasks = [asyncio.create_task(send(producer)) for _ in range(case.tasks)]
        await asyncio.sleep(0)
        if case.cancelled:
            await asyncio.sleep(0)
            order = tasks[::2]
            random.Random(1).shuffle(order)
            for task in order:
                task.cancel()
            await asyncio.wait(order)
            ends["pending"] = sum(not task.done() for task in tasks)
            figures = Figures(case.name, case.tasks, dict(ends), before, resident("VmHWM"), time.process_time() - began)
            await producer.close(0)
            await asyncio.wait(tasks)
            return figures
        await asyncio.wait(tasks)
        return Figures(case.name, case.tasks, dict(ends), before, resident("VmHWM"), time.process_time() - began)


def run_here(name: str, tasks: str, servers: str) -> None:
    """The whole of a process: prints its figures."""
    figures = asyncio.run(run(dataclasses.replace(CASES[name], tasks=int(tasks)), servers))
    print(json.dumps(dataclasses.asdict(figures)))


async def measure(options: argparse.Namespace) -> Report:
    environment, cpu = Environment.now(loop="asyncio", broker="keeps nothing, in another process"), MachineCpu()
    figures = []
    async with discarding_broker(4) as servers:
        for case in CASES.values():
            tasks = max(case.tasks // options.share, 2)
            statement = "from benchmarks.stress.back_pressure import run_here; run_here(*sys.argv[1:])"
            started = python_command(statement, case.name, str(tasks), servers)
            done = await asyncio.to_thread(subprocess.run, started, stdout=subprocess.PIPE, check=True)
            figures.append(Figures(**json.loads(done.stdout)))
            command.say(f"{case.name}: {figures[-1].ends}")
    return Report(dataclasses.replace(environment, others=cpu.others()), figures)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks back-pressure",
        description="Lets more tasks await send than there is memory for, and measures what they take.",
        epilog="Exit status 0: no record failed, and only cancelled tasks did not get theirs; 1: otherwise.",
    )
    parser.add_argument("--share", type=positive, default=1, metavar="N", help="numbers of tasks are divided by this")
    command.add_json(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    if not STATUS.exists():
        print("python -m benchmarks back-pressure needs /proc, as Linux has it", file=sys.stderr)
        return 2
    return command.end(asyncio.run(measure(options)), options)
