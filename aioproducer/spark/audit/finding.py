"""The findings of an audit, and the columns in which its rules report them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from aioproducer import Severity


class Kind(StrEnum):
    """One way in which delivery is not as it should be."""

    MISSING = "acknowledged and missing"
    MISPLACED = "acknowledged elsewhere"
    RESURRECTED = "reported as not sent, but present"
    UNENDED = "never acknowledged and never failed"
    GAP = "gap"
    HOLE = "hole"
    DUPLICATE = "duplicate"
    EQUAL = "equal records"
    REORDERED = "reordered"
    TORN = "torn transaction"
    OPEN = "open transaction"
    ABORTED_READ = "aborted record read"
    UNREAD = "committed record not read"
    INCOMPLETE_LOG = "incomplete delivery log"
    LATE = "late"
    SKEW = "skew"
    SPLIT_KEY = "key in several partitions"

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self in _WARNINGS else Severity.CRITICAL

    @property
    def meaning(self) -> str:
        """One sentence for the report."""
        return _MEANINGS[self]


_WARNINGS: Final = frozenset({Kind.OPEN, Kind.INCOMPLETE_LOG, Kind.LATE, Kind.SKEW, Kind.SPLIT_KEY})

_MEANINGS: Final = {
    Kind.MISSING: "The broker acknowledged the record, and it is in none of the topics.",
    Kind.MISPLACED: "The record is in the log, but not where the broker acknowledged it.",
    Kind.RESURRECTED: "The record failed with an error that says it cannot be in the log, and it is.",
    Kind.UNENDED: "The producer was closed, and its log has no outcome of the record.",
    Kind.GAP: "Numbers that a producer gave to its records follow each other, and some are not there.",
    Kind.HOLE: "Offsets follow each other, and some are not there.",
    Kind.DUPLICATE: "One and the same record is there more than once.",
    Kind.EQUAL: "Records that were to differ have the same key and value.",
    Kind.REORDERED: "A record stands behind one that its producer sent later.",
    Kind.TORN: "One transaction ended differently, or not at all, in some of its partitions.",
    Kind.OPEN: "A transaction has neither been committed nor aborted, longer than one may take.",
    Kind.ABORTED_READ: "A reader of committed records was given one of a transaction that was not committed.",
    Kind.UNREAD: "A reader of committed records was not given one that is committed.",
    Kind.INCOMPLETE_LOG: "Events are missing from the delivery log, so what it says proves less.",
    Kind.LATE: "In some minutes records took longer than they may.",
    Kind.SKEW: "A partition has many times the records of its topic's average one.",
    Kind.SPLIT_KEY: "Records with one key are in several partitions, so nothing keeps their order.",
}

FINDING_SCHEMA: Final = (
    "kind string, topic string, partition int, first_offset long, last_offset long, producer_id long, "
    "producer_epoch int, stream string, first_counter long, last_counter long, key binary, records long, what string"
)
"""The schema of what every rule returns. ``records``: how many are concerned. Null where a column does not apply."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of a rule, with the names of ``FINDING_SCHEMA``."""

    kind: Kind
    topic: str | None
    partition: int | None
    first_offset: int | None
    last_offset: int | None
    producer_id: int | None
    producer_epoch: int | None
    stream: str | None
    first_counter: int | None
    last_counter: int | None
    key: bytes | None
    records: int
    what: str

    @property
    def where(self) -> str:
        """Topic, partition and offsets, as ``orders-3@17…19``; empty where there is no place."""
        if self.topic is None:
            return ""
        place = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"{place}@{self.offsets}" if self.offsets else place

    @property
    def offsets(self) -> str:
        """As ``17…19``; empty where there are none."""
        return "" if self.first_offset is None else _span(self.first_offset, self.last_offset)

    @property
    def who(self) -> str:
        """Producer id and epoch, stream and counters, and key, as far as they are known."""
        parts = []
        if self.producer_id is not None:
            epoch = "" if self.producer_epoch is None else f" epoch {self.producer_epoch}"
            parts.append(f"producer {self.producer_id}{epoch}")
        if self.stream is not None:
            counters = "" if self.first_counter is None else f" number {_span(self.first_counter, self.last_counter)}"
            parts.append(f"stream {self.stream}{counters}")
        if self.key is not None:
            parts.append(f"key {shown(self.key)}")
        return ", ".join(parts)

    def __str__(self) -> str:
        return " · ".join(part for part in (self.kind.value, self.where, self.who, self.what) if part)


def _span(first: int | None, last: int | None) -> str:
    return f"{first}" if last is None or last == first else f"{first}…{last}"


def shown(key: bytes, most: int = 60) -> str:
    """Bytes for people: as text if they are text, else as hexadecimal digits; cut off if they are long."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = f"0x{key.hex()}"
    else:
        text = text if text.isprintable() else repr(text)
    return text if len(text) <= most else f"{text[:most]}…"
