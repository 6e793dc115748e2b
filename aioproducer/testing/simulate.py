"""``python -m aioproducer.testing.simulate --seeds 300``: runs seeds of the simulation; says how to replay what fails.

See :mod:`aioproducer.testing.simulation`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TextIO

from aioproducer.testing.simulation import KINDS, Report, simulate

_SHOWN = 5
"""Violations of one seed that are printed."""


def main(arguments: Sequence[str] | None = None, out: TextIO = sys.stdout) -> int:
    """Runs the seeds asked for; the exit status is 0 if all of them kept every promise."""
    options = _parser().parse_args(arguments)
    kinds = options.faults
    seeds = range(options.seed, options.seed + options.seeds)
    began = time.perf_counter()
    run = failed = 0
    records = acknowledged = transactions = committed = 0
    virtual = 0.0
    for report in _run(seeds, kinds, options.verbose, options.jobs):
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
            print(*describe_failure(report, kinds, narrow=options.narrow), sep="\n", file=out, flush=True)
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
        description="Runs the deterministic simulation: one seed is one schedule, and one that fails can be replayed.",
        epilog="Kinds of faults: " + "; ".join(f"{kind}: {text}" for kind, text in KINDS.items()) + ".",
    )
    parser.add_argument("--seed", type=int, default=0, help="the first seed (%(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from the first on (%(default)s)")
    parser.add_argument(
        "--faults",
        type=_kinds,
        default=tuple(KINDS),
        metavar="KIND,…",
        help="only these kinds of faults, or 'none'; a name with - before it: all but these",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print the scenario and everything that happens")
    parser.add_argument("--narrow", action="store_true", help="find the kinds of faults that a failing seed needs")
    parser.add_argument("--jobs", type=int, default=1, help="processes (%(default)s)")
    parser.add_argument("--fail-after", type=int, default=0, metavar="N", help="stop after so many failing seeds")
    return parser


def _kinds(text: str) -> tuple[str, ...]:
    """The kinds that a value of ``--faults`` stands for."""
    names = [name.strip() for name in text.split(",") if name.strip() not in ("", "none")]
    unknown = [name for name in names if name.removeprefix("-") not in KINDS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no fault {', '.join(unknown)}; there are {', '.join(KINDS)}")
    without = {name[1:] for name in names if name.startswith("-")}
    if without:
        return tuple(kind for kind in KINDS if kind not in without)
    return tuple(kind for kind in KINDS if kind in names)


def _run(seeds: Iterable[int], kinds: Collection[str], verbose: bool, jobs: int) -> Iterator[Report]:
    one = partial(simulate, kinds=kinds, keep_trace=verbose)
    if jobs == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(one, seeds, chunksize=10)


def describe_failure(report: Report, kinds: Collection[str], *, narrow: bool) -> list[str]:
    """What went wrong with a seed, and how to see it again."""
    seed = report.scenario.seed
    if narrow:
        kinds = narrowed(seed, kinds)
    lines = [f"seed {seed} FAILED:", *(f"  {violation}" for violation in report.violations[:_SHOWN])]
    more = len(report.violations) - _SHOWN
    if more > 0:
        lines.append(f"  … and {more} more")
    lines.append(f"  replay: {replay_command(seed, kinds)}")
    return lines


def replay_command(seed: int, kinds: Collection[str]) -> str:
    """The command that runs the seed again and prints its trace."""
    faults = "" if tuple(kinds) == tuple(KINDS) else f" --faults {','.join(kinds) or 'none'}"
    return f"python -m aioproducer.testing.simulate --seed {seed}{faults} -v"


def narrowed(seed: int, kinds: Collection[str]) -> tuple[str, ...]:
    """As few of the kinds of faults as still make the seed fail, leaving out one after the other."""
    needed = tuple(kinds)
    for kind in kinds:
        fewer = tuple(other for other in needed if other != kind)
        if not simulate(seed, kinds=fewer).ok:
            needed = fewer
    return needed


if __name__ == "__main__":
    sys.exit(main())
