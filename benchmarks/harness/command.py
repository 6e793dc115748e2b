"""The common part of the commands of ``python -m benchmarks``: options, progress, the report and the exit status."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import Field, asdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, cast

from benchmarks.harness import results
from benchmarks.harness.environment import Environment
from benchmarks.harness.runtime import best_loop, loop_factory


class Report(Protocol):
    """A dataclass with the figures of all rounds."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def markdown(self) -> str: ...

    def problems(self) -> list[str]: ...


class Verdict(NamedTuple):
    """A target, what was measured of it, and whether that meets it."""

    target: str
    measured: str
    met: bool

    @property
    def problem(self) -> str:
        return f"{self.target}: it is {self.measured}"

    @property
    def text(self) -> str:
        """As Markdown."""
        return "met" if self.met else "**not met**"

    @staticmethod
    def table(verdicts: Sequence[Verdict]) -> list[str]:
        """As lines of Markdown."""
        rows = [(one.target, one.measured, one.text) for one in verdicts]
        return ["| target | measured | |", "|---|---:|---|", *(f"| {' | '.join(row)} |" for row in rows)]


def page(environment: Environment, tables: Sequence[str], problems: Sequence[str] = ()) -> str:
    """What a command prints, as Markdown: the environment, the tables, and the problems if there are any."""
    lines = [*(f"- {name}: {value}" for name, value in environment.lines()), "", *tables]
    if problems:
        lines += ["", "### Problems", "", *(f"- {problem}" for problem in problems)]
    return "\n".join(lines) + "\n"


class Plotted(Protocol):
    """A report that can draw itself, as the text of an SVG file."""

    def plot(self) -> str: ...


def add_json(parser: argparse.ArgumentParser, *, written: str = "all figures, each run's too,") -> None:
    """``written`` is what is in the file, in words."""
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write {written} to this file")


def add_options(parser: argparse.ArgumentParser, *, written: str = "all figures, each run's too,") -> None:
    """For commands that run on an event loop."""
    add_json(parser, written=written)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default=best_loop())


def add_plot(parser: argparse.ArgumentParser) -> None:
    """For commands whose report is ``Plotted``."""
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures into this SVG file")


def say(line: str) -> None:
    """How a command reports its progress."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def quiet(name: str = "aioproducer") -> Iterator[None]:
    """Loggers of that name and below log only what is critical: for benchmarks whose brokers fail on purpose."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def report(
    measure: Callable[[argparse.Namespace, Callable[[str], object]], Coroutine[Any, Any, Report]],
    options: argparse.Namespace,
) -> int:
    """Measures on the event loop of the options, and ends as ``end`` does."""
    with asyncio.Runner(loop_factory=loop_factory(options.loop)) as runner:
        return end(runner.run(measure(options, say)), options)


def end(made: Report, options: argparse.Namespace) -> int:
    """Prints the report, and returns the exit status: 1 if there are problems."""
    if options.json is not None:
        results.write(options.json, asdict(made))
    drawing: Path | None = getattr(options, "plot", None)
    if drawing is not None:
        drawing.write_text(cast(Plotted, made).plot(), encoding="utf-8")
    print(made.markdown(), end="")
    return 1 if made.problems() else 0
