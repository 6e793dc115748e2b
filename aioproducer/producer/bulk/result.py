"""The result of a bulk send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from aioproducer.errors import DeliveryError
from aioproducer.producer.diagnosis.failure_log import FailedRun


class OffsetRange(NamedTuple):
    """The offsets of a bulk send's records in one partition; other records may lie between them."""

    first: int
    """The lowest offset; -1 if the broker gave none (acks=0, or a recognised retry whose offset it had forgotten)."""
    last: int
    """The highest offset; -1 as above."""
    records: int
    """The number of records delivered to this partition."""


class BulkResult:
    """How the records of one ``send_many`` or ``send_table`` ended: each is counted once, delivered or failed.

    Failures are logged if the result is dropped before ``failed``, ``errors`` or ``raise_if_failed()`` was used.
    """

    _unread: Callable[[Sequence[FailedRun]], object] | None = None
    """Logs the failures; may be called in any thread, at any moment."""

    def __init__(
        self,
        count: int,
        delivered: int,
        offsets: Mapping[tuple[str, int], OffsetRange],
        failed_runs: Sequence[FailedRun],
        unread: Callable[[Sequence[FailedRun]], object] | None = None,
    ) -> None:
        self.count = count
        """The number of records."""
        self.delivered = delivered
        self.offsets = offsets
        """By :class:`TopicPartition`, for partitions with delivered records: ``result.offsets["orders", 0].last``."""
        self._failed_runs = failed_runs
        if failed_runs:
            self._unread = unread

    def __del__(self) -> None:
        if self._unread is not None:
            self._unread(self._failed_runs)

    @property
    def failed(self) -> int:
        """The number of records that were not delivered."""
        self._unread = None
        return self.count - self.delivered

    @cached_property
    def errors(self) -> list[tuple[int, DeliveryError]]:
        """(index, error) of each failed record, by index; ``error.outcome`` says whether it may be in the log.

        Records that ended together share one error.
        """
        self._unread = None
        return sorted(
            ((index, error) for indices, error in self._failed_runs for index in indices), key=lambda failed: failed[0]
        )

    def raise_if_failed(self) -> None:
        """Raises the error of the first record that failed, if any did."""
        if self.failed:
            index, error = self.errors[0]
            error.add_note(f"record {index}, the first of {self.failed} that failed out of {self.count}")
            raise error

    def __repr__(self) -> str:
        return f"<BulkResult count={self.count} delivered={self.delivered} failed={self.count - self.delivered}>"
