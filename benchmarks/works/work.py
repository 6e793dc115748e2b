"""What a client is given to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

QUICK = 5
"""A quick run has so many times fewer records."""


@dataclass(frozen=True)
class Work:
    """``run(client, topic, value, records)`` sends all records, checks every outcome, returns failures by kind.

    ``needs`` is the base class of the clients that can do it. A run has ``most_records`` records, or as many as make
    ``most_bytes`` if that is less: enough to last, not so much that a disk decides.
    """

    name: str
    title: str
    needs: type
    run: Callable[[Any, str, bytes, int], Awaitable[Counter[str]]]
    most_records: int
    most_bytes: int

    def records(self, size: int, *, quick: bool) -> int:
        """How many records of ``size`` bytes a run has."""
        return max(1, min(self.most_records, self.most_bytes // size) // (QUICK if quick else 1))
