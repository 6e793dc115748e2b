"""Logs failures of unawaited records, in few lines."""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

from aioproducer.errors import DeliveryError, TransactionAbortedException
from aioproducer.errors.printable import printable
from aioproducer.producer.diagnosis.wording import counted
from aioproducer.timing.log_interval import LogInterval

log = logging.getLogger(__name__)

MOST_LINES: Final = 20
"""Lines that are logged in one turn of the loop: each costs some 50 µs, and more with slow handlers."""

Cause = tuple[str, str, str]
"""Topic, name of the error, outcome."""

FailedRun = tuple[Sequence[int], DeliveryError]
"""Indices of records of a bulk call, ascending, and the error that they share."""


class _Failed:
    """Failures of one topic with one cause that are not logged yet; ``error`` is the first."""

    def __init__(self, error: DeliveryError) -> None:
        self.error = error
        self.records = 0
        self.partitions: set[int] = set()

    def fields(self, topic: str) -> dict[str, object]:
        """The fields for machines (docs/services.md); ``partition`` is None if there are several."""
        known = self.partitions - {-1}
        return {
            "event": "not_delivered",
            "topic": topic,
            "partition": min(known) if len(known) == 1 else None,
            "partitions": len(known),
            "records": self.records,
            "error": type(self.error).__name__,
            "outcome": self.error.outcome.value,
        }

    def line(self, topic: str) -> str:
        """``partition`` is -1 for records without one so far."""
        known = self.partitions - {-1}
        topic = printable(topic)
        where, among = topic, ""
        if len(known) > 1:
            among = f" in {len(known)} partitions"
        elif known == self.partitions:
            where = f"{topic}-{min(known)}"
        said = f"{counted(self.records, 'record')}{among} {'was' if self.records == 1 else 'were'} not delivered"
        return f"{where}: {said} ({self.error.outcome.value}): {self.error}"


def _nothing() -> None:
    """The default callback."""


class FailureLog:
    """One line per topic and cause, then what has added up, at most every ten seconds: however many partitions.

    Failures of the same moment share a line, so nothing is logged before ``write``, which the owner calls soon after
    ``on_failure()`` and then at ``next``. Thousands of topics may fail together, so ``write`` logs MOST_LINES at most.
    Times in seconds.
    """

    def __init__(self, on_failure: Callable[[], object] = _nothing) -> None:
        self._on_failure = on_failure
        self._interval = LogInterval()
        self._unwritten: dict[Cause, _Failed] = {}
        self._due: list[tuple[float, int, Cause]] = []
        """A heap of these causes: when each may be logged, and a number, which keeps them in their order."""
        self._count = 0
        self._closed = False

    def failed(self, topic: str, partition: int, records: int, error: DeliveryError, now: float) -> None:
        """``partition`` is -1 for records without one so far."""
        if isinstance(error, TransactionAbortedException):
            return  # the user aborted; a record that caused it, if any, has its own line
        cause = (topic, type(error).__name__, error.outcome.value)
        failed = self._unwritten.get(cause)
        if failed is None:
            failed = self._unwritten[cause] = _Failed(error)
            self._count += 1
            heapq.heappush(self._due, (self._interval.next(cause), self._count, cause))
            self._on_failure()
        failed.records += records
        failed.partitions.add(partition)
        if self._closed:
            _ = self._write(math.inf, now, most=1)

    def write(self, now: float) -> None:
        """Logs what is due. If there are more lines than MOST_LINES, ``next`` stays in the past."""
        _ = self._write(now, now, most=MOST_LINES)

    def next(self) -> float | None:
        """When ``write`` has something to log."""
        return self._due[0][0] if self._due else None

    def write_rest(self, now: float) -> bool:
        """Logs MOST_LINES of what is left, due or not. Returns whether there is more."""
        return self._write(math.inf, now, most=MOST_LINES)

    def close(self, now: float) -> None:
        """Logs what is left, and from now on everything at once."""
        self._closed = True
        _ = self._write(math.inf, now, most=len(self._due))

    def _write(self, until: float, now: float, *, most: int) -> bool:
        """Whether some are left that are due by then."""
        for _ in range(most):
            if not self._due or self._due[0][0] > until:
                return False
            _, _, cause = heapq.heappop(self._due)
            self._interval.logged(cause, now)
            failed = self._unwritten.pop(cause)
            log.error(failed.line(cause[0]), extra={"kafka": failed.fields(cause[0])})
        return bool(self._due) and self._due[0][0] <= until
