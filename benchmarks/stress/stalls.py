"""``python -m benchmarks stalls``: how long the event loop is held by what happens to many things at once.

Each case runs on its own loop, which measures the CPU time of every callback. A case repeats in several rounds; the
figures are medians. The turn is what other tasks wait for: all callbacks that were ready, the user's tasks included.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict, quiet
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.stress.measured_loop import Held, MeasuredLoop
from benchmarks.stress.stall_cases import CASES, Case

MOST = 0.005
"""Seconds that no callback may take."""


@dataclass(frozen=True)
class Figures:
    """One case in one round, in milliseconds of CPU."""

    case: str
    size: int
    round: int
    callback_ms: float
    turn_ms: float
    collector_ms: float
    """The longest run of the garbage collector, which is in neither."""
    what: str
    """The longest callback, in words."""


@dataclass(frozen=True)
class Report:
    """All rounds."""

    environment: Environment
    rounds: int
    figures: Sequence[Figures]

    def callback_ms(self, case: str) -> float:
        return median(one.callback_ms for one in self._of(case))

    def _of(self, case: str) -> list[Figures]:
        return [one for one in self.figures if one.case == case]

    def verdicts(self) -> dict[str, Verdict]:
        """By the name of the case."""
        took = {case.name: self.callback_ms(case.name) for case in self._cases() if case.aioproducer}
        return {
            name: Verdict(f"{name}: no callback takes more than {MOST * 1e3:.0f} ms", f"{ms:.1f} ms", ms <= MOST * 1e3)
            for name, ms in took.items()
        }

    def problems(self) -> list[str]:
        return [verdict.problem for verdict in self.verdicts().values() if not verdict.met]

    def _cases(self) -> list[Case]:
        measured = {one.case for one in self.figures}
        return [case for case in CASES if case.name in measured]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        verdicts = self.verdicts()
        met, most = sum(verdict.met for verdict in verdicts.values()), f"{MOST * 1e3:.0f} ms"
        lines = [
            f"Milliseconds of CPU; medians of {self.rounds} rounds. {met} of {len(verdicts)} cases with aioproducer"
            f" meet the target: no callback takes more than {most}.",
            "",
            f"| case | size | | longest callback | longest turn | garbage collector | callback ≤ {most} |",
            "|---|---:|---|---:|---:|---:|---|",
        ]
        for case in self._cases():
            of = self._of(case.name)
            cells = [self.callback_ms(case.name), median(one.turn_ms for one in of), median(o.collector_ms for o in of)]
            figures = " | ".join(f"{cell:.1f}" for cell in cells)
            verdict = verdicts[case.name].text if case.aioproducer else ""
            lines.append(f"| `{case.name}` | {of[0].size:,} | {case.title} | {figures} | {verdict} |")
        return lines

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())


def measure(case: Case, size: int, round_: int) -> Figures:
    """Runs it once, on a loop of its own."""
    loop = MeasuredLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        held = runner.run(_run(case, loop, size))
    return Figures(case.name, size, round_, held.callback * 1e3, held.turn * 1e3, held.collector * 1e3, held.what)


async def _run(case: Case, loop: MeasuredLoop, size: int) -> Held:
    return await case.run(loop, size)


def stalls(options: argparse.Namespace) -> Report:
    environment, cpu = Environment.now(loop="asyncio", broker="ours"), MachineCpu()
    cases = [case for case in CASES if not options.cases or case.name in options.cases]
    figures: list[Figures] = []
    for round_ in range(1, options.rounds + 1):
        for case in cases:
            figures.append(measure(case, max(case.size // options.share, 1), round_))
            one = figures[-1]
            command.say(f"round {round_}, {case.name}: callback {one.callback_ms:.1f} ms ({one.what})")
    return Report(dataclasses.replace(environment, others=cpu.others()), options.rounds, figures)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks stalls",
        description="Measures how long callbacks hold the event loop when much happens at once.",
        epilog=f"Exit status 0: no callback takes more than {MOST * 1e3:.0f} ms of CPU; 1: one does.",
    )
    parser.add_argument(
        "--cases", nargs="+", choices=[case.name for case in CASES], metavar="CASE", help="a part of it"
    )
    parser.add_argument("--rounds", type=positive, default=3, metavar="N", help="%(default)s, whose medians count")
    parser.add_argument("--share", type=positive, default=1, metavar="N", help="sizes are divided by this")
    command.add_json(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    with quiet():
        return command.end(stalls(options), options)
