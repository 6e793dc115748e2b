"""``python -m benchmarks attacks``: what one hostile client does to an honest one of the embedded broker.

Each attack has a broker of its own, ``aioproducer broker`` in a process whose log nobody reads. An honest client
produces a small record every 10 ms with ``acks=all`` and fetches it again, first alone and then while another process
attacks. A latency counts from when the record was due until it was fetched, so a broker that stands still cannot hide
it.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.attacks.attack_list import ATTACKS, Attack
from benchmarks.attacks.attacked_broker import attacked_broker
from benchmarks.attacks.attacker import Attacker, attacker
from benchmarks.attacks.honest_client import HONEST, HonestClient
from benchmarks.attacks.hostile_client import HOSTILE
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.statistics import quantiles

P99_MS = 50.0
"""The 99th percentile of the honest client has to be below this."""

PEAK_MIB = 512.0
"""So much memory the broker may have at most."""

HOSTILE_PARTITIONS = 200
"""Partitions of the topic ``HOSTILE``."""

_QUIET_RECORDS = 100


@dataclass(frozen=True)
class Attacked:
    """Milliseconds by name of the quantile, before the attack and during it; the broker's peak memory."""

    attack: str
    what: str
    quiet: dict[str, float]
    beside: dict[str, float]
    records: int
    peak_mib: float

    def verdicts(self) -> list[Verdict]:
        p99 = self.beside["p99"]
        return [
            Verdict(f"{self.attack}: p99 < {P99_MS:g} ms", f"{p99:.1f} ms", p99 < P99_MS),
            Verdict(f"{self.attack}: memory < {PEAK_MIB:g} MiB", f"{self.peak_mib:.0f} MiB", self.peak_mib < PEAK_MIB),
        ]

    def row(self) -> str:
        quiet, beside = self.quiet, self.beside
        return (
            f"| {self.what} | {quiet['p99']:.1f} | {beside['p50']:.1f} | {beside['p99']:.1f} | {beside['max']:.0f} "
            f"| {self.peak_mib:.0f} |"
        )


@dataclass(frozen=True)
class Report:
    """All attacks."""

    environment: Environment
    seconds: int
    attacks: Sequence[Attacked]

    def problems(self) -> list[str]:
        return [verdict.problem for one in self.attacks for verdict in one.verdicts() if not verdict.met]

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        return [
            f"Milliseconds of the honest client, {self.seconds} s or more of each attack; the broker's peak memory.",
            "",
            "| attack | p99 before | p50 | p99 | longest | MiB |",
            "|---|---:|---:|---:|---:|---:|",
            *(one.row() for one in self.attacks),
        ]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())


async def attacked(attack: Attack, seconds: float) -> Attacked:
    """What the honest client and the broker notice of an attack."""
    with tempfile.TemporaryDirectory() as directory:
        topics = ("--topic", f"{HOSTILE}:{HOSTILE_PARTITIONS}", "--topic", f"{HONEST}:1")
        arguments = [argument.format(data=Path(directory, "data")) for argument in attack.arguments]
        async with attacked_broker([*topics, *arguments], attack.descriptors) as broker:
            async with HonestClient(broker.port) as honest, attacker(attack.name, broker.port, seconds) as hostile:
                left = iter(range(_QUIET_RECORDS))
                quiet = await honest.latencies(lambda: next(left, None) is not None)
                beside = await _beside(honest, hostile)
            return Attacked(
                attack.name,
                attack.what,
                quantiles(quiet),
                quantiles(beside),
                len(beside),
                broker.peak_memory() / (1 << 20),
            )


async def _beside(honest: HonestClient, hostile: Attacker) -> list[float]:
    """The honest client's latencies from the begin of an attack to its end."""
    attack = asyncio.create_task(hostile.attack())
    try:
        found = await honest.latencies(lambda: not attack.done())
        await attack
    finally:
        attack.cancel()
    return found


async def attacks(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment = Environment.now(loop=options.loop, broker="`aioproducer broker`, in a process of its own")
    cpu = MachineCpu()
    found = []
    for name in options.only or ATTACKS:
        found.append(await attacked(ATTACKS[name], options.seconds))
        progress(f"{name}: {found[-1].row()}")
    return Report(dataclasses.replace(environment, others=cpu.others()), options.seconds, found)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks attacks",
        description="Attacks the embedded broker, and measures what an honest client notices.",
        epilog=f"Exit status 0: the p99 is below {P99_MS:g} ms beside each attack, the memory below {PEAK_MIB:g} MiB.",
    )
    parser.add_argument("--seconds", type=positive, default=4, metavar="S", help="of each attack (%(default)s)")
    parser.add_argument("--only", nargs="+", choices=ATTACKS, metavar="ATTACK", help=", ".join(ATTACKS))
    command.add_options(parser)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    return command.report(attacks, parse_arguments(arguments))
