"""The package's log during a run."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from aioproducer.build_info import say_if_interpreted
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.trace import Trace
from aioproducer.testing.simulation.users.workload import CallbackRaised


@contextmanager
def watched_log(trace: Trace, violations: Violations) -> Iterator[None]:
    """Writes log records into the trace, and nowhere else. An exception that is only logged is a violation."""
    say_if_interpreted()  # here, or it would be in the trace of a process's first run alone
    logger = logging.getLogger("aioproducer")
    handler = _LogWatch(trace, violations)
    propagate, level = logger.propagate, logger.level
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
        logger.setLevel(level)


class _LogWatch(logging.Handler):
    def __init__(self, trace: Trace, violations: Violations) -> None:
        super().__init__()
        self._trace = trace
        self._violations = violations

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self._trace("log", record.name, message)
        if record.exc_info and not isinstance(record.exc_info[1], CallbackRaised):
            details = "".join(traceback.format_exception(record.exc_info[1]))
            self._violations.add("no exception is lost", f"{message}\n{details}")
