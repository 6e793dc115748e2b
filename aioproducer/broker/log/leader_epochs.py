"""The first offset of each leader epoch in a log: Kafka's ``LeaderEpochFileCache``.

Clients use it to find out how far a log agrees with what they have read: a leader that is elected after records were
lost begins its epoch at a lower offset than the lost records had.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

NO_EPOCH = -1
NO_OFFSET = -1


class EpochEndOffset(NamedTuple):
    """An epoch, and the offset after its last record; -1 and -1 if unknown."""

    leader_epoch: int
    end_offset: int


UNDEFINED = EpochEndOffset(NO_EPOCH, NO_OFFSET)


class LeaderEpochs:
    """The epochs that have records, each with its first offset. Both increase."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        entries = list(entries)
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]
        self.latest = self._epochs[-1] if entries else NO_EPOCH
        """-1 if there is none."""

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def begin(self, epoch: int, start_offset: int) -> None:
        """The first record of a new epoch was appended."""
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch

    def delete_before(self, log_start_offset: int) -> None:
        """The start of the log has moved to this offset."""
        gone = bisect_right(self._starts, log_start_offset) - 1
        if gone >= 0:
            del self._epochs[:gone], self._starts[:gone]
            self._starts[0] = log_start_offset

    def end_offset_of(self, epoch: int, current: int, log_end_offset: int) -> EpochEndOffset:
        """The largest epoch that is not larger than ``epoch``, and where it ended. The leader is one of the ``current``
        epoch, which may be one without records."""
        if epoch == NO_EPOCH or epoch > current:
            return UNDEFINED
        if epoch == current:
            return EpochEndOffset(epoch, log_end_offset)
        beyond = bisect_right(self._epochs, epoch)
        end = self._starts[beyond] if beyond < len(self._starts) else log_end_offset
        return EpochEndOffset(self._epochs[beyond - 1] if beyond else epoch, end)

    def at(self, offset: int) -> int:
        """The epoch of the record at this offset; -1 if no epoch had begun by then."""
        begun = bisect_right(self._starts, offset)
        return self._epochs[begun - 1] if begun else NO_EPOCH
