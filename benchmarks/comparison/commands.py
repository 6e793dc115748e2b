"""The commands that measure or show several clients: ``python -m benchmarks``, ``curves``, ``lines`` and ``report``.

Each prints tables. Exit status 0: every run was right; 1: some failed or lost records; 2: wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.clients import CLIENTS, WINDOW_20
from benchmarks.comparison.comparison import KAFKA, Stage, compare_or_explain
from benchmarks.comparison.curves import Curves
from benchmarks.comparison.far_brokers import WINDOW, carried, far_brokers
from benchmarks.comparison.lines import Lines
from benchmarks.comparison.report import Report
from benchmarks.harness import results
from benchmarks.harness.arguments import list_of, positive, some_of
from benchmarks.works.curve_works import AXES
from benchmarks.works.line_works import LINE_CLIENTS, LINE_WORKS, PARTITIONS, ROUND_TRIPS_MS, records_over
from benchmarks.works.run import Description
from benchmarks.works.works import QUICK, QUICK_WORKS, WORKS, Work

ROUNDS, CURVE_ROUNDS, LINE_ROUNDS, QUICK_ROUNDS = 5, 3, 3, 1
COMPARED = tuple(name for name in CLIENTS if name != WINDOW_20)
CURVE_CLIENTS = ("aioproducer", "confluent-kafka")

EPILOG = "Exit status 0: every run was right; 1: some failed or lost records; 2: wrong usage."

Shown = Report | Curves | Lines


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


def lines_main(arguments: Sequence[str]) -> int:
    """Measures how much goes over long lines."""
    options = parse_lines(arguments)
    works = [
        work
        for work in LINE_WORKS.values()
        if work.partitions in options.partitions and work.round_trip_ms in options.round_trips_ms
    ]

    def records(work: Work, client: Description) -> int:
        fit = records_over(work.round_trip_ms, work.partitions, client.name) // (QUICK if options.quick else 1)
        return int(options.records or fit)

    title = f"{KAFKA}, behind a slow line; of {WINDOW_20} the embedded broker, which announces windows of {WINDOW}"
    stage = Stage(title, partial(far_brokers, options.clients), records)
    carries = {far: asyncio.run(carried(far)) for far in options.round_trips_ms}
    report = compare_or_explain(options, works, lambda report: keep(Lines(report, carries), options.json), stage)
    return 1 if report is None else show(Lines(report, carries), plot=options.plot, plain=True)


def report_main(arguments: Sequence[str]) -> int:
    """Prints the tables of a file that one of the others has written."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks report",
        description="Prints the tables of figures that --json has written, also of a run that was interrupted.",
        epilog="Exit status 0: every run was right; 1: some failed, lost records or are missing; 2: wrong usage.",
    )
    parser.add_argument("file", type=Path, help="what --json of the comparison, of curves or of lines has written")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures, as SVG, into this file")
    parser.add_argument("--plain", action="store_true", help="Markdown, even on a terminal")
    options = parser.parse_args(arguments)
    try:
        shown = load(options.file)
    except (OSError, ValueError, KeyError, TypeError) as error:
        parser.error(f"{options.file} has no figures of a comparison, of curves or of lines: {error!r}")
    return show(shown, plot=options.plot, plain=options.plain)


def parse_compare(arguments: Sequence[str], other_commands: Collection[str] = ()) -> argparse.Namespace:
    """Exits with status 2 when the arguments make no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Runs Kafka producers side by side and prints how aioproducer compares with each of them.",
        epilog=EPILOG
        + (f" Other commands, each with its --help: {', '.join(other_commands)}." if other_commands else ""),
    )
    _add_options(parser, quick="a tenth of the records, once: two minutes or less, and much noisier", clients=COMPARED)
    _add_cluster(parser)
    parser.add_argument(
        "--works",
        type=some_of(WORKS),
        metavar="NAME[,...]",
        help=f"{list_of(WORKS)}; by default all, with --quick {', '.join(QUICK_WORKS)}",
    )
    parser.add_argument("--plain", action="store_true", help="Markdown, even on a terminal")
    options = _parse(parser, arguments, ROUNDS)
    if options.works is None:
        options.works = list(QUICK_WORKS if options.quick else WORKS)
    return options


def parse_curves(arguments: Sequence[str]) -> argparse.Namespace:
    """The same for ``curves``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks curves",
        description="Measures what a record costs as records, partitions, topics and senders grow, and by codec.",
        epilog=EPILOG,
    )
    _add_options(parser, quick="a tenth of the records, once", clients=CURVE_CLIENTS, rounds=CURVE_ROUNDS)
    _add_cluster(parser)
    parser.add_argument(
        "--axes", type=some_of(AXES), default=list(AXES), metavar="NAME[,...]", help=list_of(AXES) + ", all by default"
    )
    return _parse(parser, arguments, CURVE_ROUNDS)


def parse_lines(arguments: Sequence[str]) -> argparse.Namespace:
    """The same for ``lines``."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks lines",
        description="Measures how much each client sends over lines of some lengths, to one partition and to six.",
        epilog=EPILOG,
    )
    _add_options(
        parser, quick="a tenth of the records, once", clients=LINE_CLIENTS, rounds=LINE_ROUNDS, known=LINE_CLIENTS
    )
    for name, known in (("--round-trips-ms", ROUND_TRIPS_MS), ("--partitions", PARTITIONS)):
        parser.add_argument(
            name,
            type=_some_numbers(known),
            default=list(known),
            metavar="N[,...]",
            help=f"{list_of(map(str, known))}, all by default",
        )
    return _parse(parser, arguments, LINE_ROUNDS)


def _some_numbers(known: Sequence[int]) -> Callable[[str], list[int]]:
    names = some_of([str(number) for number in known])
    return lambda text: [int(name) for name in names(text)]


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str], rounds: int) -> argparse.Namespace:
    options = parser.parse_args(arguments)
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else rounds
    return options


def _add_options(
    parser: argparse.ArgumentParser,
    *,
    quick: str,
    clients: Iterable[str],
    rounds: int = ROUNDS,
    known: Iterable[str] = COMPARED,
) -> None:
    """What ``compare`` takes; ``clients`` is the default of the ``known`` ones, ``quick`` what that means, in words."""
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
        "--clients",
        type=some_of(known),
        default=list(clients),
        metavar="NAME[,...]",
        help=f"{list_of(known)}; {', '.join(clients)} by default",
    )
    parser.add_argument("--records", type=positive, metavar="N", help="records a run, in place of what the work says")
    parser.add_argument("--no-uvloop", action="store_true", help="asyncio's own event loop, even if uvloop is there")


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT[,...]",
        help="measure against this cluster, in topics made and deleted there, instead of starting Kafka here",
    )


def keep(shown: Shown, file: Path | None) -> None:
    """Writes what there is so far, if there is to be a file."""
    if file is not None:
        results.write(file, shown.json())


def load(file: Path) -> Shown:
    """What such a file holds."""
    found = results.read(file)
    if "carried" in found:
        return Lines.from_json(found)
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
