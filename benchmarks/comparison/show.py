"""Shows the figures of clients side by side; ``python -m benchmarks report`` shows those of a file again."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison.curves import Curves
from benchmarks.comparison.report import Report
from benchmarks.harness import results

Shown = Report | Curves


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


def main(arguments: Sequence[str]) -> int:
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
