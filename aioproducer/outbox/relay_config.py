"""The options of a relay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from aioproducer.errors import IllegalArgumentException

Begin = Literal["marker", "adopt", "anew"]
"""Where a relay begins: at its position in Kafka; there, although the database has another identity, or at the copy in
the database, where Kafka has none; or with all rows of the table."""


def check_begin(begin: Begin) -> Begin:
    """``begin``; IllegalArgumentException if it is none."""
    if begin not in get_args(Begin):
        raise IllegalArgumentException(f"begin is {begin!r}; it must be one of {', '.join(get_args(Begin))}")
    return begin


@dataclass(frozen=True, kw_only=True)
class RelayConfig:
    """The parameters of :class:`OutboxRelay`; times are in seconds."""

    name: str
    position_topic: str
    dead_letter_topic: str | None
    clean_up: bool
    most_rows: int
    most_bytes: int
    poll_interval: float
    clean_up_interval: float
    standby_interval: float
    refresh_interval: float
    longest_wait: float

    def __post_init__(self) -> None:
        for name in ("name", "position_topic"):
            if not getattr(self, name):
                raise IllegalArgumentException(f"{name} is empty")
        for name in ("most_rows", "most_bytes"):
            if getattr(self, name) < 1:
                raise IllegalArgumentException(f"{name} is {getattr(self, name)}; it must be 1 or more")
        for name in ("poll_interval", "clean_up_interval", "standby_interval", "refresh_interval", "longest_wait"):
            if not getattr(self, name) > 0:
                raise IllegalArgumentException(f"{name} is {getattr(self, name)}; it must be more than 0 seconds")
