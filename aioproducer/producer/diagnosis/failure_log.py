"""Logs failures of unawaited records, in few lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from aioproducer.errors import DeliveryError, TransactionAbortedException
from aioproducer.errors.printable import printable
from aioproducer.producer.diagnosis.wording import counted
from aioproducer.timing.log_interval import LogInterval

log = logging.getLogger(__name__)

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
    ``on_failure()`` and then at ``next``. Times in seconds.
    """

    def __init__(self, on_failure: Callable[[], object] = _nothing) -> None:
        self._on_failure = on_failure
        self._interval = LogInterval()
        self._unwritten: dict[Cause, _Failed] = {}
        self._closed = False

    def failed(self, topic: str, partition: int, records: int, error: DeliveryError, now: float) -> None:
        """``partition`` is -1 for records without one so far."""
        if isinstance(error, TransactionAbortedException):
            return  # the user aborted; a record that caused it, if any, has its own line
        cause = (topic, type(error).__name__, error.outcome.value)
        failed = self._unwritten.get(cause)
        if failed is None:
            failed = self._unwritten[cause] = _Failed(error)
            self._on_failure()
        failed.records += records
        failed.partitions.add(partition)
        if self._closed:
            self._write(cause, now)

    def write(self, now: float) -> None:
        """Logs everything whose interval is over."""
        if not self._unwritten:
            return
        for cause in [cause for cause in self._unwritten if self._interval.next(cause) <= now]:
            self._write(cause, now)

    def next(self) -> float | None:
        """When ``write`` has something to log."""
        return min(map(self._interval.next, self._unwritten)) if self._unwritten else None

    def close(self, now: float) -> None:
        """Logs what is left, and from now on everything at once."""
        self._closed = True
        for cause in list(self._unwritten):
            self._write(cause, now)

    def _write(self, cause: Cause, now: float) -> None:
        self._interval.logged(cause, now)
        failed = self._unwritten.pop(cause)
        log.error(failed.line(cause[0]), extra={"kafka": failed.fields(cause[0])})
