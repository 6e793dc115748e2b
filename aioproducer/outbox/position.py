"""Which rows are relayed: those that a snapshot of the database sees, up to an id.

An id alone cannot say it: ids are drawn before the commit, so a row with a lower id may become visible later. A
transaction's id alone cannot either, because it is assigned before the commit, too. A snapshot is exact. PgQ separates
its batches in the same way (``pgq.tick``). ``docs/internals/outbox.md`` has the proofs.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Final, Self

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Snapshot:
    """PostgreSQL's ``pg_snapshot``: which transactions had ended when it was taken.

    Transactions below ``xmin`` had ended, those from ``xmax`` on had not begun to write, and of those between them the
    ones in ``xip`` had not ended.
    """

    xmin: int
    xmax: int
    xip: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """PostgreSQL's form, ``xmin:xmax:xip,xip``; ValueError if it is not one."""
        xmin, xmax, xip = text.split(":")
        return cls._checked(int(xmin), int(xmax), tuple(map(int, xip.split(","))) if xip else ())

    @classmethod
    def unpack(cls, text: str) -> Self:
        """The short form of :meth:`pack`; ValueError if it is not one."""
        xmin, span, steps = text.split(":")
        at, xip = int(xmin, 36), []
        for step in steps.split(".") if steps else ():
            at += int(step, 36)
            xip.append(at)
        return cls._checked(int(xmin, 36), int(xmin, 36) + int(span, 36), tuple(xip))

    @classmethod
    def _checked(cls, xmin: int, xmax: int, xip: tuple[int, ...]) -> Self:
        if not 0 < xmin <= xmax or list(xip) != sorted(set(xip)) or (xip and not xmin <= xip[0] <= xip[-1] < xmax):
            raise ValueError(f"no snapshot has xmin {xmin}, xmax {xmax} and {len(xip)} transactions between them")
        return cls(xmin, xmax, xip)

    def pack(self) -> str:
        """A form that is short even with hundreds of open transactions: their distances, in base 36."""
        before = (self.xmin, *self.xip)
        steps = ".".join(_base36(xid - other) for xid, other in zip(self.xip, before, strict=False))
        return f"{_base36(self.xmin)}:{_base36(self.xmax - self.xmin)}:{steps}"

    def sees(self, xid: int) -> bool:
        """``pg_visible_in_snapshot``: whether this transaction had ended."""
        if xid < self.xmin or xid >= self.xmax:
            return xid < self.xmin
        at = bisect_left(self.xip, xid)
        return at == len(self.xip) or self.xip[at] != xid

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, self.xip))}"


NOTHING: Final = Snapshot(1, 1)
"""Sees no transaction."""


@dataclass(frozen=True)
class Position:
    """The rows up to an id whose transactions had ended when the snapshot was taken."""

    last: int = 0
    snapshot: Snapshot = NOTHING

    def has(self, row_id: int, xid: int) -> bool:
        """Whether a row is among them. The id counts as well, since a database that crashed may assign again the id of
        a transaction that left nothing behind; an id of a committed row is not drawn again."""
        return row_id <= self.last and self.snapshot.sees(xid)

    def pack(self) -> str:
        """A short form, for the marker."""
        return f"{self.last}:{self.snapshot.pack()}"

    @classmethod
    def unpack(cls, text: str) -> Self:
        """What :meth:`pack` made; ValueError if it did not."""
        last, _, snapshot = text.partition(":")
        return cls(int(last), Snapshot.unpack(snapshot))


@dataclass(frozen=True)
class Progress:
    """What is relayed: ``since``; within a window also the rows of ``until`` up to the id ``after``.

    A window is what ``until`` has and ``since`` has not, and is relayed in the order of ids. So a backlog of any length
    is relayed in transactions of a limited size.
    """

    since: Position = Position()
    until: Position | None = None
    after: int = 0

    def to(self, until: Position) -> Progress:
        """At the beginning of a window."""
        return Progress(self.since, until)

    def past(self, row_id: int) -> Progress:
        """Within the window, with the rows up to this id."""
        return Progress(self.since, self.until, row_id)

    def ended(self) -> Progress:
        """With the whole window."""
        return Progress(self.since if self.until is None else self.until)

    @property
    def newest(self) -> int:
        """The highest id of a row that is relayed."""
        return max(self.since.last, self.after)

    def has(self, row_id: int, xid: int) -> bool:
        """Whether a row is relayed."""
        within = self.until is not None and row_id <= self.after and self.until.has(row_id, xid)
        return within or self.since.has(row_id, xid)


def _base36(number: int) -> str:
    digits = ""
    while number >= 36:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return _DIGITS[number] + digits
