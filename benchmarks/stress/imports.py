"""``python -m benchmarks imports``: the CPU time and the memory that it takes to import a producer, and to make one.

Each import is made in a new process, which has imported asyncio before, and the clients take turns. Bytecode is there
already: one turn is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.processes import output_of

OURS: Final = "aioproducer"
MADE: Final = "aioproducer.KafkaProducer"
STATEMENTS: Final = {
    OURS: "from aioproducer import KafkaProducer",
    MADE: "from aioproducer import KafkaProducer; KafkaProducer(bootstrap_servers='localhost:9092')",
    "aiokafka": "from aiokafka import AIOKafkaProducer",
    "confluent_kafka": "from confluent_kafka import Producer",
    "kafka": "from kafka import KafkaProducer",
}
"""By the module that is imported. The first producer that is made imports what a producer consists of."""

TARGET_MS: Final = 60
TARGET_MIB: Final = 20

_MEASURE: Final = """
import asyncio, json, sys
from benchmarks.harness.usage import cpu_seconds, peak_rss
cpu, rss = cpu_seconds(), peak_rss()
exec(sys.argv[1])
print(json.dumps([(cpu_seconds() - cpu) * 1000, (peak_rss() - rss) / 2**20, len(sys.modules)]))
"""


@dataclass(frozen=True)
class Run:
    """One import: milliseconds of CPU, MiB, and the modules that are loaded then."""

    module: str
    round: int
    ms: float
    mib: float
    modules: int


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    rounds: int
    runs: Sequence[Run]

    def verdicts(self) -> list[Verdict]:
        ours = [run for run in self.runs if run.module == OURS]
        ms, mib = median(run.ms for run in ours), median(run.mib for run in ours)
        return [
            Verdict(f"CPU ≤ {TARGET_MS} ms", f"{ms:.0f} ms", ms <= TARGET_MS),
            Verdict(f"memory ≤ {TARGET_MIB} MiB", f"{mib:.1f} MiB", mib <= TARGET_MIB),
        ]

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        lines = [
            f"After asyncio; medians of {self.rounds} processes each.",
            "",
            "| import | CPU | memory | modules loaded then |",
            "|---|---:|---:|---:|",
        ]
        for module in dict.fromkeys(run.module for run in self.runs):
            runs = [run for run in self.runs if run.module == module]
            ms, mib, modules = (median(one) for one in zip(*((r.ms, r.mib, r.modules) for r in runs), strict=True))
            lines.append(f"| `{STATEMENTS[module]}` | {ms:.0f} ms | {mib:.1f} MiB | {modules:.0f} |")
        return [*lines, "", *Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables())


async def turn(module: str, round_: int) -> Run:
    ms, mib, modules = json.loads(await output_of(_MEASURE, STATEMENTS[module]))
    return Run(module, round_, ms, mib, modules)


async def measure(rounds: int) -> Report:
    environment, cpu = Environment.now(loop="asyncio", broker="none"), MachineCpu()
    present = [module for module in STATEMENTS if importlib.util.find_spec(module.partition(".")[0])]
    runs = [await turn(module, round_) for round_ in range(rounds + 1) for module in present]
    environment = dataclasses.replace(environment, others=cpu.others())
    return Report(environment, rounds, [run for run in runs if run.round > 0])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks imports",
        description=__doc__,
        epilog="Exit status 0: both targets are met; 1: one is not.",
    )
    parser.add_argument("--rounds", type=positive, default=15)
    command.add_json(parser)
    options = parser.parse_args(arguments)
    return command.end(asyncio.run(measure(options.rounds)), options)
