"""Decides how long the first records and offsets of a transaction wait for the markers of the last one.

A coordinator answers EndTxn when the decision is in its log, and has the markers written afterwards. Until they are, it
adds no partition to the next transaction (``CONCURRENT_TRANSACTIONS``). In the second protocol the broker that gets the
records then asks it again after 20 ms (``add.partitions.to.txn.retry.backoff.ms``), and in the first one the producer
does. So records that come a moment too early take 20 ms longer, although the markers of most transactions take one or
two.

The best delay is learnt by trying: each, in steps of a millisecond from the answer to EndTxn, has the mean time of the
first answers with it, and the one whose answer is expected first is chosen. So there is none where records are not too
early, where the longest is too short, or where answers are slow for other reasons. What was learnt of a delay counts
less the longer ago it was, so that each is tried again from time to time. Once the answers with one delay have become
much faster, nothing that was learnt counts any more.
"""

from __future__ import annotations

import math
from typing import Final

STEP: Final = 0.001
LONGEST: Final = 0.01
"""Seconds: half of what records that come too early take longer."""
MEMORY: Final = 16
"""The answers that a mean is of, roughly."""
FORGETTING: Final = 32
"""Transactions for each answer in it after which the mean of a delay that was not tried counts a third."""
FASTER: Final = 4
"""Answers with a delay, one after the other, that take less than a quarter of their mean: then all is learnt anew."""
SLOWEST: Final = 0.1
"""Seconds: answers that take longer count as this, since a retry of the request or a lost broker took them."""


class _Delay:
    """The first answers with one delay."""

    __slots__ = ("count", "faster", "mean", "tried")

    def __init__(self) -> None:
        self.mean = 0.0
        """Seconds from the end of the delay."""
        self.count = 0
        self.faster = 0
        """The last ones in a row that took less than a quarter of the mean."""
        self.tried = 0
        """The number of the last transaction with it."""

    def expected(self, transaction: int) -> float:
        """Seconds; 0 before the first, so that each is tried unless it is longer than others take in all."""
        if self.count == 0:
            return 0.0
        return self.mean * math.exp((self.tried - transaction) / (FORGETTING * min(self.count, MEMORY)))

    def took(self, seconds: float, transaction: int) -> None:
        self.faster = self.faster + 1 if seconds < self.mean / 4 else 0
        self.count += 1
        self.mean += (seconds - self.mean) / min(self.count, MEMORY)
        self.tried = transaction


class MarkerPause:
    """The pause between the answer to EndTxn and the first records. All times are in seconds, of one clock."""

    def __init__(self, longest: float = LONGEST) -> None:
        self._delays = [_Delay() for _ in range(1 + int(longest / STEP))]
        self._transaction = 0
        self._ended = -math.inf
        self._over_at: float | None = None
        """When the pause of this transaction is over; None before its first records."""
        self._tried: _Delay | None = None
        """The delay of this transaction, until the first answer."""

    def ended(self, now: float) -> None:
        """The coordinator has answered EndTxn."""
        self._transaction += 1
        self._ended = now
        self._over_at = self._tried = None

    def left(self, now: float) -> float:
        """Seconds that records and offsets of this transaction wait; the first ones decide it. Not positive: none."""
        if self._over_at is None:
            self._over_at = self._decide(now)
        return self._over_at - now

    def answered(self, now: float) -> None:
        """A broker has answered to records or offsets of this transaction."""
        delay, self._tried = self._tried, None
        if delay is None or self._over_at is None:
            return
        delay.took(min(now - self._over_at, SLOWEST), self._transaction)
        if delay.faster == FASTER:
            self._delays = [_Delay() for _ in self._delays]

    def _decide(self, now: float) -> float:
        gap = now - self._ended
        if gap >= STEP * len(self._delays):
            return now  # so late that it says nothing

        def until_answer(place: int) -> float:
            return max(STEP * place - gap, 0.0) + self._delays[place].expected(self._transaction)

        at = int(gap / STEP)
        best = min(range(at, len(self._delays)), key=until_answer)
        self._tried = self._delays[best]
        return now if best == at else self._ended + STEP * best
