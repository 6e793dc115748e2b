"""The checks of an audit: of how many records, and why not of the others. A verdict is worth no more than these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aioproducer.spark.audit.finding import Kind
from aioproducer.spark.audit.options import AuditOptions


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the records and their logs have that a check can look at: how many records of each kind."""

    records: int
    sequenced: int
    """With a sequence."""
    stamped: int
    """With the stamps of a DeliveryLog."""
    logged: int
    """Stamped, and their log was given and has something about them."""
    timed: int
    """Of which is known when they were sent, and when they arrived."""
    transactional: int
    matched: int
    """In transactions whose parts in several partitions can be distinguished from those of other transactions."""
    has_log: bool
    """Any delivery log was given."""
    read_committed: bool
    """The topics were read once more, as readers of committed records do."""


@dataclass(frozen=True, slots=True)
class Check:
    """One sentence that is to hold, and for how many of the records it was checked."""

    claim: str
    kinds: Sequence[Kind]
    """What is found where it does not hold."""
    checked: int
    records: int
    """All that it is about."""
    why_not: str = ""
    """Why it was not checked for the others."""
    optional: bool = False
    """A topic may be in order where it does not hold."""

    @property
    def complete(self) -> bool:
        return self.checked >= self.records

    @property
    def unchecked(self) -> int:
        """Records for which nothing is known."""
        return max(0, self.records - self.checked)

    @property
    def gap(self) -> str:
        """The claim, how many records it was not checked for, and why."""
        which = "any record" if self.checked == 0 else f"{self.unchecked:,} of {self.records:,} records"
        return f"{self.claim} (not checked for {which}: {self.why_not})"


def checks(seen: Evidence, options: AuditOptions) -> list[Check]:
    """All of them, those first that matter most."""
    no_log = "no delivery log was given" if not seen.has_log else "no delivery log has them"
    no_stamps = "they have no stamps of a delivery log"
    records = seen.records
    return [
        Check("offsets follow each other", (Kind.HOLE,), records, records),
        Check(
            "sequences of producers follow each other",
            (Kind.GAP, Kind.DUPLICATE, Kind.REORDERED),
            seen.sequenced,
            records,
            "they have no sequence, because their producer was not idempotent",
        ),
        Check(
            "no record is there twice",
            (Kind.DUPLICATE, Kind.EQUAL),
            records if options.unique else seen.stamped,
            records,
            f"{no_stamps}, and contents are compared only with the option unique",
        ),
        Check(
            "acknowledged records are there, and failed ones are not",
            (Kind.MISSING, Kind.MISPLACED, Kind.RESURRECTED, Kind.UNENDED, Kind.INCOMPLETE_LOG),
            seen.logged,
            records,
            no_log,
        ),
        Check(
            "no number of a stream is missing",
            (Kind.GAP,),
            0 if options.partial else seen.stamped,
            records,
            "with the option partial they may be in other topics" if options.partial else no_stamps,
        ),
        Check("records are in the order in which they were sent", (Kind.REORDERED,), seen.stamped, records, no_stamps),
        Check(
            "transactions ended, in the same way in all their partitions",
            (Kind.TORN, Kind.OPEN),
            seen.matched,
            seen.transactional,
            "neither stamps nor the epochs of markers show which parts belong together",
        ),
        Check(
            "readers of committed records get those, and no others",
            (Kind.ABORTED_READ, Kind.UNREAD),
            records if seen.read_committed else 0,
            records,
            "they were not read in this way, as with the option read_committed",
        ),
        Check(
            "records arrived in time",
            (Kind.LATE,),
            seen.timed,
            records,
            "neither a delivery log nor stamps and the broker's timestamp show how long they took",
            optional=True,
        ),
        Check(
            f"no partition has {options.skew:g} times the average",
            (Kind.SKEW,),
            records,
            records,
            optional=True,
        ),
        Check(
            "each key is in one partition",
            (Kind.SPLIT_KEY,),
            records if options.keyed else 0,
            records,
            "only with the option keyed",
            optional=True,
        ),
    ]
