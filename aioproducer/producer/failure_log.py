"""Failures of records that nobody waits for, told in few lines."""

from __future__ import annotations

import logging

from aioproducer.errors import DeliveryError

log = logging.getLogger(__name__)

QUIET = 10.0
"""Seconds between two lines about the same partition and cause."""


class FailureLog:
    """One line per partition and cause at once, then what has added up, at most every ten seconds."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], float] = {}
        self._untold: dict[tuple[str, str], int] = {}

    def failed(self, topic: str, partition: int, records: int, error: DeliveryError, now: float) -> None:
        """``partition`` is -1 for records that had not come so far as to have one."""
        where = f"{topic}-{partition}" if partition >= 0 else topic
        key = (where, type(error).__name__)
        records += self._untold.pop(key, 0)
        if now - self._told.get(key, -QUIET) < QUIET:
            self._untold[key] = records
            return
        self._told[key] = now
        log.error("%s: %d records were not delivered (%s): %s", where, records, error.outcome.value, error)

    def close(self) -> None:
        """Tells what has not been told yet."""
        for (where, cause), records in self._untold.items():
            log.error("%s: %d more records were not delivered: %s", where, records, cause)
        self._untold.clear()
