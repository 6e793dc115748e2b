"""The commands that measure or show several clients: ``python -m benchmarks``, its ``curves`` and its ``report``.

Each prints tables. Exit status 0: every run was right; 1: some failed or lost records; 2: wrong usage.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from benchmarks.clients import CLIENTS
from benchmarks.comparison.comparison import compare_or_explain
from benchmarks.comparison.curves import Curves
from benchmarks.comparison.report import Report
from benchmarks.harness import results
from benchmarks.harness.arguments import list_of, positive, some_of
from benchmarks.works.curve_works import AXES
from benchmarks.works.works import BY_NAME, QUICK_WORKS, WORKS

ROUNDS, CURVE_ROUNDS, QUICK_ROUNDS = 5, 3, 1
CURVE_CLIENTS = ("aioproducer", "confluent-kafka")

EPILOG = "Exit status 0: every run was right; 1: some failed or lost records; 2: wrong usage."

Shown = Report | Curves


def compare_main(arguments: Sequence[str], other_commands: Collection[str] = ()) -> int:
    """Compares clients in all works, or in those chosen. ``--help`` also names ``other_commands``."""
    options = parse_compare(arguments, other_commands)
    works = [WORKS[name] for name in options.works]
    report = compare_or_explain(options, works, lambda report: keep(report, options.json))
    return 1 if report is None else show(report, plot=options.plot, plain=options.plain)


def curves_main(arguments: Sequence[str]) -> int:
    """Measures what a record costs as work grows."""
    options = parse_curves(arguments)
    axes = [AXES[name] for name in options.axes]
    works = [work for axis in axes for _, work in axis.points]
    report = compare_or_explain(options, works, lambda report: keep(Curves(report, axes), options.json))
    return 1 if report is None else show(Curves(report, axes), plot=options.plot, plain=True)


def report_main(arguments: Sequence[str]) -> int:
    """Prints the tables of a file that one of the others has written."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks report",
        description="Prints the tables of figures that --json has written, also of a run that was interrupted.",
        epilog="Exit status 0: every run was right; 1: some failed, lost records or are missing; 2: wrong usage.",
    )
    parser.add_argument("file", type=Path, help="what --json of the comparison, or of curves, has written")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures, as SVG, into this file")
    parser.add_argument("--plain", action="store_true", help="Markdown, even on a terminal")
    options = parser.parse_args(arguments)
    try:
        shown = load(options.file)
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{options.file} has no figures of a comparison or of curves: {error!r}")
    return show(shown, plot=options.plot, plain=options.plain)


def parse_compare(arguments: Sequence[str], other_commands: Collection[str] = ()) -> argparse.Namespace:
    """Exits with status 2 when the arguments make no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Runs Kafka producers side by side and prints how aioproducer compares with each of them.",
        epilog=EPILOG
        + (f" Other commands, each with its --help: {', '.join(other_commands)}." if other_commands else ""),
    )
    _add_options(parser, quick="a tenth of the records, once: two minutes or less, and much noisier", clients=CLIENTS)
    parser.add_argument(
        "--works",
        type=some_of(WORKS),
        metavar="NAME[,...]",
        help=f"{list_of(WORKS)}; by default all but {', '.join(BY_NAME)}, with --quick {', '.join(QUICK_WORKS)}",
    )
    parser.add_argument("--plain", action="store_true", help="Markdown, even on a terminal")
    options = _parse(parser, arguments, ROUNDS)
    if options.works is None:
        options.works = list(QUICK_WORKS) if options.quick else [name for name in WORKS if name not in BY_NAME]
    return options


def parse_curves(arguments: Sequence[str]) -> argparse.Namespace:
    """The same for ``curves``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks curves",
        description="Measures what a record costs as records, partitions, topics and senders grow, and by codec.",
        epilog=EPILOG,
    )
    _add_options(parser, quick="a tenth of the records, once", clients=CURVE_CLIENTS, rounds=CURVE_ROUNDS)
    parser.add_argument(
        "--axes", type=some_of(AXES), default=list(AXES), metavar="NAME[,...]", help=list_of(AXES) + ", all by default"
    )
    return _parse(parser, arguments, CURVE_ROUNDS)


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str], rounds: int) -> argparse.Namespace:
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else rounds
    return options


def _add_options(parser: argparse.ArgumentParser, *, quick: str, clients: Iterable[str], rounds: int = ROUNDS) -> None:
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


def keep(shown: Shown, file: Path | None) -> None:
    """Writes what there is so far, if there is to be a file."""
    if file is not None:
        results.write(file, shown.json())


def load(file: Path) -> Shown:
    """What such a file holds."""
    found = results.read(file)
    return Curves.from_json(found) if "axes" in found else Report.from_json(found)


def show(shown: Shown, *, plot: Path | None, plain: bool) -> int:
    """Prints the tables, draws the plot; returns the exit status."""
    if plot is not None:
        plot.write_text(shown.svg(), encoding="utf-8")
    if isinstance(shown, Report) and not plain and sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        shown.print_to_terminal()
    else:
        print(shown.markdown(), end="")
    return 1 if shown.problems() else 0
