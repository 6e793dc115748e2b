"""Prints for people: results on standard output, everything else on standard error.

On a terminal there are progress bars, tables and colours; elsewhere plain lines without frames, and tables as
tab-separated values. rich is imported when there is something to draw.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from aioproducer.cli.log_lines import LogLines, write_to_standard_error

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PLAIN_PROGRESS_EVERY = 5.0
"""Seconds between two lines of progress where there is no terminal."""

_NAME_WIDTH = 14

# The messages of these loggers are part of each command's own report.
_IN_REPORTS = frozenset({"aioproducer.producer.diagnosis.failure_log"})


class Meter(Protocol):
    """Shows progress."""

    def update(self, done: int, detail: str) -> None:
        """``done`` of the total; ``detail`` is shown beside it."""


class Terminal:
    """Standard output and standard error."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet

    def say(self, text: str, *, style: str = "") -> None:
        """A line of the result."""
        if not self.quiet:
            _print(sys.stdout, text, style)

    def facts(self, rows: Iterable[tuple[str, str]]) -> None:
        """Names and values of the result, a line each."""
        for name, value in rows:
            self.say(f"{name:<{_NAME_WIDTH}}{value}")

    def note(self, text: str) -> None:
        """A line about what is happening."""
        if not self.quiet:
            _print(sys.stderr, text)

    def warn(self, text: str) -> None:
        """A line about something that may matter."""
        _print(sys.stderr, text, "yellow")

    def fail(self, text: str) -> None:
        """A line about what went wrong."""
        _print(sys.stderr, text, "red")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Rows as a table; tab-separated and without a heading where there is no terminal."""
        if not sys.stdout.isatty():
            for row in rows:
                _print(sys.stdout, "\t".join(map(str, row)))
            return
        from rich.console import Console
        from rich.table import Table

        made = Table(*columns, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            made.add_row(*map(str, row))
        Console().print(made, highlight=False)

    @contextmanager
    def meter(self, label: str, total: int | None) -> Iterator[Meter]:
        """A progress bar, a line now and then, or nothing; ``total`` is None when it is not known."""
        if self.quiet:
            yield _NoMeter()
        elif not sys.stderr.isatty():
            yield _LineMeter(self, label, total)
        else:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

            columns = [
                SpinnerColumn(),
                TextColumn("{task.description}"),
                *([BarColumn(), TaskProgressColumn()] if total is not None else []),
                TextColumn("{task.fields[detail]}", markup=False),
            ]
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                task = progress.add_task(label, total=total, detail="")
                yield _BarMeter(progress, task)

    @contextmanager
    def logging(self) -> Iterator[None]:
        """Shows the package's warnings. If standard error is not read, only these lines wait."""
        lines = LogLines(self.warn if sys.stderr.isatty() else write_to_standard_error)
        handler = _LogHandler(lines)
        logger = logging.getLogger("aioproducer")
        logger.addHandler(handler)
        propagate, logger.propagate = logger.propagate, False
        try:
            yield
        finally:
            logger.propagate = propagate
            logger.removeHandler(handler)
            lines.close()


def _print(stream: TextIO, text: str, style: str = "") -> None:
    if style and stream.isatty():
        from rich.console import Console

        Console(file=stream).print(text, style=style, markup=False, highlight=False, soft_wrap=True)
    else:
        print(text, file=stream, flush=True)  # unchanged: rich would turn tabs into spaces


class _NoMeter:
    def update(self, done: int, detail: str) -> None:
        pass


class _BarMeter:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def update(self, done: int, detail: str) -> None:
        self._progress.update(self._task, completed=done, detail=detail)


class _LineMeter:
    def __init__(self, terminal: Terminal, label: str, total: int | None) -> None:
        self._terminal = terminal
        self._label = label
        self._total = total
        self._next = time.monotonic() + PLAIN_PROGRESS_EVERY

    def update(self, done: int, detail: str) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PLAIN_PROGRESS_EVERY
        share = f"{done * 100 // self._total} % " if self._total else ""
        self._terminal.note(f"{self._label}: {share}{detail}")


class _LogHandler(logging.Handler):
    def __init__(self, lines: LogLines) -> None:
        super().__init__(logging.WARNING)
        self._lines = lines
        self.setFormatter(logging.Formatter())

    def filter(self, record: logging.LogRecord) -> bool:
        return record.name not in _IN_REPORTS

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.put(f"{record.levelname.lower()}: {self.format(record)}")
