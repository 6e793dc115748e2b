"""The ledger of a time-out: how a record spent its time.

A batch books its own attempts and back-offs in its ledger, which exists from its first retry on. Causes that batches
share are looked up in the :class:`~aioproducer.producer.scheduling.wait_history.WaitHistory` when an attempt or the
batch has ended. A batch delivered at the first attempt has no ledger. The entries of a ledger always add up to the time
it covers.
"""

from __future__ import annotations

from aioproducer.producer.diagnosis.wording import duration
from aioproducer.types import LedgerEntry

MAX_ENTRIES = 12
"""The most entries of a ledger; the last one adds up the rest."""
OTHER = "other"


class Ledger:
    """Books time by cause, from ``start`` on and without gaps."""

    __slots__ = ("_entries", "booked_until")

    def __init__(self, start: float) -> None:
        self.booked_until = start
        self._entries: dict[str, tuple[float, int]] = {}

    def copy(self) -> Ledger:
        """An independent copy."""
        copied = Ledger(self.booked_until)
        copied._entries = dict(self._entries)
        return copied

    def book(self, until: float, cause: str, times: int = 1) -> None:
        """Books the time up to ``until`` that is not booked yet for this cause, which occurred this many more times."""
        seconds = max(until - self.booked_until, 0.0)
        self.booked_until = max(until, self.booked_until)
        if cause not in self._entries and len(self._entries) >= MAX_ENTRIES - 1:
            cause = OTHER
        before, count = self._entries.get(cause, (0.0, 0))
        self._entries[cause] = (before + seconds, count + times)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """In the order in which they first came up."""
        return tuple(LedgerEntry(cause, seconds, count) for cause, (seconds, count) in self._entries.items())


def in_words(entries: tuple[LedgerEntry, ...]) -> str:
    """``34 s no leader, 86 s NOT_ENOUGH_REPLICAS x3``; entries below a millisecond are left out."""
    shown = [entry for entry in entries if entry.seconds >= 0.001] or list(entries)
    return ", ".join(
        f"{duration(entry.seconds)} {entry.cause}" + (f" x{entry.count}" if entry.count > 1 else "") for entry in shown
    )
