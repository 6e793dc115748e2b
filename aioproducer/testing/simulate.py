"""``python -m aioproducer.testing.simulate --seeds 300``: runs seeds of the simulation; prints how to replay failures.

See :mod:`aioproducer.testing.simulation`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple, TextIO

from aioproducer.testing.simulation import KINDS, Report, simulate

_SHOWN = 5
"""The number of violations that are printed for one seed."""


def main(arguments: Sequence[str] | None = None, out: TextIO = sys.stdout) -> int:
    """Runs the requested seeds; the exit status is 0 if none of them has a violation."""
    options = _parser().parse_args(arguments)
    asked = Asked(tuple(options.faults), {kind: rate for kind, rate in options.faults.items() if rate}, options.ample)
    seeds = range(options.seed, options.seed + options.seeds)
    began = time.perf_counter()
    run = failed = 0
    records = acknowledged = transactions = committed = 0
    virtual = 0.0
    for report in _run(seeds, asked, options.verbose, options.jobs):
        run += 1
        records += report.records
        acknowledged += report.acknowledged
        transactions += report.transactions
        committed += report.committed
        virtual += report.virtual_seconds
        if options.verbose:
            print(*report.scenario.describe(), *report.trace, f"trace {report.digest}", sep="\n", file=out)
        if not report.ok:
            failed += 1
            print(*describe_failure(report, asked, narrow=options.narrow), sep="\n", file=out, flush=True)
            if failed == options.fail_after:
                break
    real = time.perf_counter() - began
    print(
        f"{run} seeds from {options.seed}, {failed} failed: {records} records, {acknowledged} acknowledged, "
        f"{transactions} transactions, {committed} committed, "
        f"{virtual:.0f} simulated seconds in {real:.1f}",
        file=out,
    )
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m aioproducer.testing.simulate",
        description="Runs the deterministic simulation: one seed is one schedule, and a failing seed can be replayed.",
        epilog="Kinds of faults: " + "; ".join(f"{kind}: {text}" for kind, text in KINDS.items()) + ".",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from the first on (%(default)s)")
    parser.add_argument(
        "--faults",
        type=_kinds,
        default=dict.fromkeys(KINDS, 0.0),
        metavar="KIND[=RATE],…",
        help="only these kinds of faults, or 'none'; a name with - before it excludes that kind; "
        "a kind with a rate applies to every seed, other kinds to the seeds that draw them",
    )
    parser.add_argument(
        "--ample",
        action="store_true",
        help="all faults pass, and every seed has enough time, memory and attempts, so nothing may fail",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print the scenario and everything that happens")
    parser.add_argument("--narrow", action="store_true", help="find the kinds of faults that a failing seed needs")
    parser.add_argument("--jobs", type=int, default=1, help="processes (%(default)s)")
    parser.add_argument("--fail-after", type=int, default=0, metavar="N", help="stop after N failing seeds")
    return parser


def _kinds(text: str) -> dict[str, float]:
    """The kinds that a value of ``--faults`` stands for, with their rates; 0 is for those that are drawn."""
    names: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, given, rate = part.partition("=")
        try:
            names[name] = float(rate) if given else 0.0
        except ValueError:
            raise argparse.ArgumentTypeError(f"the rate of {name} must be a number, not {rate!r}") from None
        if given and not 0 < names[name] <= 1:
            raise argparse.ArgumentTypeError(f"the rate of {name} must be more than 0 and at most 1, not {rate}")
    names.pop("none", None)
    unknown = [name for name in names if name.removeprefix("-") not in KINDS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no fault {', '.join(unknown)}; there are {', '.join(KINDS)}")
    if any(name.startswith("-") for name in names):
        return {kind: names.get(kind, 0.0) for kind in KINDS if f"-{kind}" not in names}
    return {kind: names[kind] for kind in KINDS if kind in names}


class Asked(NamedTuple):
    """The options of every seed: kinds of faults, the rates that are not drawn, and whether there is ample time."""

    kinds: tuple[str, ...] = tuple(KINDS)
    rates: Mapping[str, float] = {}
    ample: bool = False

    def run(self, seed: int, *, keep_trace: bool = False) -> Report:
        return simulate(seed, kinds=self.kinds, rates=self.rates, ample=self.ample, keep_trace=keep_trace)

    def without(self, kind: str) -> Asked:
        kinds = tuple(other for other in self.kinds if other != kind)
        return self._replace(kinds=kinds, rates={other: rate for other, rate in self.rates.items() if other != kind})


def _run(seeds: Iterable[int], asked: Asked, verbose: bool, jobs: int) -> Iterator[Report]:
    one = partial(asked.run, keep_trace=verbose)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, seeds, chunksize=10)


def describe_failure(report: Report, asked: Asked, *, narrow: bool) -> list[str]:
    """The violations of a seed, and the command that replays it."""
    seed = report.scenario.seed
    if narrow:
        asked = narrowed(seed, asked)
    lines = [f"seed {seed} FAILED:", *(f"  {violation}" for violation in report.violations[:_SHOWN])]
    more = len(report.violations) - _SHOWN
    if more > 0:
        lines.append(f"  … and {more} more")
    lines.append(f"  replay: {replay_command(seed, asked)}")
    return lines


def replay_command(seed: int, asked: Asked) -> str:
    """The command that runs the seed again and prints its trace."""
    named = [f"{kind}={asked.rates[kind]:g}" if kind in asked.rates else kind for kind in asked.kinds]
    faults = "" if named == list(KINDS) else f" --faults {','.join(named) or 'none'}"
    ample = " --ample" if asked.ample else ""
    return f"python -m aioproducer.testing.simulate --seed {seed}{ample}{faults} -v"


def narrowed(seed: int, asked: Asked) -> Asked:
    """Leaves out one kind of fault after the other, as long as the seed still fails."""
    for kind in asked.kinds:
        fewer = asked.without(kind)
        if not fewer.run(seed).ok:
            asked = fewer
    return asked


if __name__ == "__main__":
    sys.exit(main())
