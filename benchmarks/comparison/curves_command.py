"""``python -m benchmarks curves``: what a record costs as work grows, beside other clients, on real Kafka.

The exit status is 0 only if every run was right.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.comparison import show
from benchmarks.comparison.arguments import QUICK_ROUNDS, add_options, list_of, some_of
from benchmarks.comparison.comparison import compare_or_say_why_not
from benchmarks.comparison.curves import Curves
from benchmarks.works.curve_works import AXES

CLIENTS = ("aioproducer", "confluent-kafka")
ROUNDS = 3


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks curves",
        description="Measures what a record costs as records, partitions, topics and senders grow, and by codec.",
        epilog="Exit status 0: every run was right; 1: some failed or lost records; 2: wrong usage.",
    )
    add_options(parser, quick="a tenth of the records, once", clients=CLIENTS, rounds=ROUNDS)
    parser.add_argument(
        "--axes", type=some_of(AXES), default=list(AXES), metavar="NAME[,...]", help=list_of(AXES) + ", all by default"
    )
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else ROUNDS
    return options


def main(arguments: Sequence[str]) -> int:
    options = parse_arguments(arguments)
    axes = [AXES[name] for name in options.axes]
    works = [work for axis in axes for _, work in axis.points]
    report = compare_or_say_why_not(options, works, lambda report: show.keep(Curves(report, axes), options.json))
    return 1 if report is None else show.show(Curves(report, axes), plot=options.plot, plain=True)
