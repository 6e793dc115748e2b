"""The state of an exactly-once write, for people: what is decided, what is open, what the next start does.

Rules only; ``inspection.py`` sends the requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from aioproducer.admin import TransactionDescription
from aioproducer.spark.exactly_once.decision import (
    Decision,
    check_none_is_missing,
    check_not_begun,
    check_order,
    forgotten,
)
from aioproducer.spark.exactly_once.marker import (
    VERSION,
    Marker,
    MarkerMismatchException,
    MissingMarkerException,
    is_of,
)
from aioproducer.spark.exactly_once.prepared import ONGOING, Prepared, slot_named


class Fate(StrEnum):
    """What has become of a transaction that was decided."""

    COMMITTED = "committed"
    OPEN = "open"
    ENDING = "being committed"
    LOST = "lost"
    GONE = "committed without a marker"
    """Its topic was deleted before it was committed, and its rows with it, or offsets of its group were deleted."""
    FORGOTTEN = "forgotten"
    """It was committed or aborted, too long ago for brokers to know."""


_ENDING, _ENDED = "PrepareCommit", "CompleteCommit"
"""Kafka's states of a transaction that is committed: in the first one it cannot be read everywhere yet."""


class NextStart(NamedTuple):
    """What a run of an epoch would do."""

    epoch: int
    refused: bool
    """Whether it fails before it writes anything."""
    does: str


@dataclass(frozen=True)
class WriteState:
    """``transactions`` by the ends of their transactional ids, behind the name of the write."""

    group: str
    """That of the decisions."""
    place: str
    streaming: bool
    decision: Decision | None
    unreadable: str | None
    """Why the decision or a marker cannot be read."""
    markers: Mapping[int, Marker | None]
    transactions: Mapping[str, TransactionDescription]

    @property
    def is_unknown(self) -> bool:
        """Whether brokers know nothing of the write: it has not begun, or has another name."""
        return self.decision is None and self.unreadable is None and not self.markers and not self.transactions

    @property
    def open(self) -> dict[str, TransactionDescription]:
        """The transactions that have not ended, including a driver's."""
        return {name: one for name, one in self.transactions.items() if one.state == ONGOING}

    @property
    def undecided(self) -> list[str]:
        """The open transactions of tasks that are not in the decision."""
        decided = {(one.name, one.producer_id, one.producer_epoch) for one in self._decided}
        return [
            name
            for name, one in self.open.items()
            if slot_named(name) is not None and (name, one.producer_id, one.producer_epoch) not in decided
        ]

    def decided(self, fate: Fate) -> list[Prepared]:
        """The transactions of the decision that ended in this way."""
        return [one for one in self._decided if self.fate(one) is fate]

    def fate(self, one: Prepared) -> Fate:
        """What has become of a transaction of the decision."""
        assert self.decision is not None
        is_there = is_of(self.markers.get(one.partition), self.decision.epoch)
        now = self.transactions.get(one.name)
        if now is not None and now.producer_id == one.producer_id:
            if now.state == ONGOING and now.producer_epoch == one.producer_epoch:
                return Fate.OPEN
            if now.producer_epoch == one.producer_epoch + one.second_protocol:
                if now.state == _ENDING:
                    return Fate.ENDING
                if now.state == _ENDED:
                    return Fate.COMMITTED if is_there else Fate.GONE
            return Fate.COMMITTED if is_there else Fate.LOST
        return Fate.COMMITTED if is_there else Fate.FORGOTTEN

    def next_start(self, epoch: int) -> NextStart:
        """What a run of this epoch does, by the rules of the sink itself."""
        last, where = self.decision, f"epoch {epoch}"
        try:
            if self.unreadable is not None:
                raise MarkerMismatchException(self.unreadable)
            check_order(last, epoch, where)
            check_none_is_missing(last, epoch, where, group=self.group, place=self.place, streaming=self.streaming)
            if last is None or (last.epoch < epoch and last.version != VERSION):
                for partition, marker in self.markers.items():
                    check_not_begun(marker, partition, epoch, where)
            if gone := self.decided(Fate.FORGOTTEN):
                raise forgotten([one.partition for one in gone], where)
        except (MarkerMismatchException, MissingMarkerException) as error:
            return NextStart(epoch, True, f"fails with {type(error).__name__}: {error}")
        if gone := self.decided(Fate.GONE):
            assert last is not None
            fails = "EpochLostException" + ("" if epoch == last.epoch else " or EpochIncompleteException")
            why = f"the markers of epoch {last.epoch} are gone, of partitions {_numbers(gone)}: its topic was deleted"
            return NextStart(epoch, True, f"fails with {fails}: {why}")
        lost = self.decided(Fate.LOST)
        if last is None or last.epoch < epoch:
            if last is not None and lost:
                does = f"fails with EpochIncompleteException: run epoch {last.epoch} again before"
                return NextStart(epoch, True, does)
            return NextStart(epoch, False, "writes all rows" + self._and_ends(last))
        if lost:
            does = (
                f"writes the rows of partitions {_numbers(lost)} again if Spark makes the same {last.partitions} "
                "partitions, and otherwise fails with EpochIncompleteException"
            )
            return NextStart(epoch, False, does + self._and_ends(last))
        compares = "writes nothing, and compares its rows with those that were decided"
        if not last.digest:
            compares = "writes nothing, and compares nothing, because the marker was set by hand"
        return NextStart(epoch, False, compares + self._and_ends(last))

    @property
    def _decided(self) -> Sequence[Prepared]:
        return () if self.decision is None else self.decision.prepared

    def _and_ends(self, last: Decision | None) -> str:
        parts = []
        if last is not None and (decided := self.decided(Fate.OPEN)):
            parts.append(f"commits {len(decided)} transactions of epoch {last.epoch}")
        if undecided := self.undecided:
            parts.append(f"aborts {len(undecided)} transactions without a decision")
        return "".join(f"; {part}" for part in parts)


def _numbers(prepared: Sequence[Prepared]) -> str:
    return ", ".join(str(one.partition) for one in prepared[:20]) + (", …" if len(prepared) > 20 else "")
