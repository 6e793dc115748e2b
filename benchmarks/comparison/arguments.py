"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.clients import CLIENTS
from benchmarks.works.works import QUICK_WORKS, WORKS

ROUNDS, QUICK_ROUNDS = 5, 1


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """``arguments`` default to those of this process; exits with status 2 when they make no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Runs Kafka producers side by side and prints how aioproducer compares with each of them.",
        epilog="Exit status 0: every run was right; 1: some failed or lost records; 2: wrong usage.",
    )
    add_options(parser, quick="a tenth of the records, once: two minutes or less, and much noisier", clients=CLIENTS)
    parser.add_argument(
        "--works",
        type=some_of(WORKS),
        metavar="NAME[,...]",
        help=f"{list_of(WORKS)}; with --quick {', '.join(QUICK_WORKS)}",
    )
    parser.add_argument("--plain", action="store_true", help="Markdown, even on a terminal")
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else ROUNDS
    if options.works is None:
        options.works = list(QUICK_WORKS if options.quick else WORKS)
    return options


def add_options(parser: argparse.ArgumentParser, *, quick: str, clients: Iterable[str], rounds: int = ROUNDS) -> None:
    """What ``compare`` takes; ``clients`` is the default, ``quick`` what that means, in words."""
    parser.add_argument(
        "--rounds",
        type=positive,
        metavar="N",
        help=f"how often each client takes its turn ({rounds}; with --quick {QUICK_ROUNDS})",
    )
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures, each run's too, to this file")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures, as SVG, into this file")
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT[,...]",
        help="measure against this cluster, in topics made and deleted there, instead of starting Kafka here",
    )
    parser.add_argument(
        "--clients",
        type=some_of(CLIENTS),
        default=list(clients),
        metavar="NAME[,...]",
        help=f"{list_of(CLIENTS)}; {', '.join(clients)} by default",
    )
    parser.add_argument("--records", type=positive, metavar="N", help="records a run, in place of what the work says")
    parser.add_argument("--no-uvloop", action="store_true", help="asyncio's own event loop, even if uvloop is there")


def positive(text: str) -> int:
    """A type of argparse: an int from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def numbers(text: str) -> list[int]:
    """A type of argparse: such ints, separated by commas."""
    return [positive(size) for size in text.split(",")]


def some_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def list_of(names: Iterable[str]) -> str:
    return f"of {', '.join(names)}; separated by commas"
