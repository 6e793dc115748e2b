"""Decides how long the first records and offsets of a transaction wait for the markers of the last one.

A coordinator answers EndTxn when the decision is in its log, and has the markers written afterwards. Until they are, it
adds no partition to the next transaction (``CONCURRENT_TRANSACTIONS``). In the second protocol the broker that gets the
records then asks it again after 20 ms (``add.partitions.to.txn.retry.backoff.ms``), and in the first one the producer
does. So records that come a moment too early take 20 ms longer, although the markers of most transactions take one or
two.

Records wait only if that is known to pay: the answers with a delay, in steps of a millisecond from the answer to
EndTxn, came sooner on average than those without one, by more than chance explains. Otherwise they do not wait, so
answers that are slow for other reasons, now and then or on one broker, cost next to nothing. Delays are tried only
where answers without one are late, so that a delay could save more than it takes, and ever more rarely. What was learnt
without a delay is forgotten soon, so that this is tried again.
"""

from __future__ import annotations

import math
from typing import Final

STEP: Final = 0.001
LONGEST: Final = 0.01
"""Seconds: half of what records that come too early take longer."""
RETRY: Final = 0.02
"""Seconds after which the coordinator is asked again."""
LATE: Final = 0.015
"""Seconds: an answer that takes no longer was not to records that came too early."""
MEMORY: Final = 64
"""The answers that a mean is of, roughly."""
FORGETTING: Final = 512
"""Transactions without a delay after which what was learnt of it counts a third, where records did not wait for it."""
FORGETTING_WAITS: Final = 4096
"""The same where they waited: most of these answers come from trials."""
ENOUGH: Final = 4
"""The answers that a mean must be of."""
SURE: Final = 3.0
"""Standard errors by which answers must come sooner with a delay."""
TRIALS: Final = 80
"""Of delays, until the time between two of them doubles."""
RARELY: Final = 64
"""Transactions between two trials, in the end."""
NEVER: Final = 0.005
"""With fewer late answers than this share there is no reason for trials; the next reason is a new one."""
SLOWEST: Final = 0.1
"""Seconds: answers that take longer count as this, since a retry of the request or a lost broker took them."""


class _Delay:
    """The first answers with one delay, in seconds from its end. The newest count most."""

    __slots__ = ("late", "mean", "tried", "variance", "weight")

    def __init__(self) -> None:
        self.mean = 0.0
        self.variance = STEP**2
        self.late = 0.0
        """The share that was late."""
        self.weight = 0.0
        self.tried = 0
        """The number of the last transaction with it."""

    def weight_at(self, transaction: int, forgetting: int) -> float:
        """How many answers the mean is of, as if all counted the same."""
        return self.weight * math.exp((self.tried - transaction) / forgetting)

    def took(self, seconds: float, transaction: int, forgetting: int) -> None:
        self.weight = min(self.weight_at(transaction, forgetting) + 1, MEMORY)
        self.tried = transaction
        away = seconds - self.mean
        self.mean += away / self.weight
        self.variance += (max(away * (seconds - self.mean), STEP**2) - self.variance) / self.weight
        self.late += ((seconds > LATE) - self.late) / self.weight


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
        self._forgetting = FORGETTING
        """How long that answer counts, in transactions."""
        self._trials = 0
        self._next_trial = 0
        """The first transaction that may be one."""

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
        if delay is not None and self._over_at is not None:
            delay.took(min(max(now - self._over_at, 0.0), SLOWEST), self._transaction, self._forgetting)

    def _decide(self, now: float) -> float:
        gap = now - self._ended
        if not 0 <= gap < STEP * len(self._delays) or (at := int(gap / STEP)) == len(self._delays):
            return now  # so late that it says nothing
        place = self._place(at, gap)
        self._tried = self._delays[place]
        self._forgetting = FORGETTING if place == at else FORGETTING_WAITS
        return now if place == at else self._ended + STEP * place

    def _place(self, at: int, gap: float) -> int:
        """The delay to use, where records could be sent after the one at ``at``, which is ``gap`` or less."""
        here = self._delays[at]
        if here.late < NEVER:
            self._trials = 0
        weight = here.weight_at(self._transaction, FORGETTING)
        if weight < ENOUGH:
            return at
        best, soonest = at, here.mean
        for place in range(at + 1, len(self._delays)):
            one = self._delays[place]
            answer = STEP * place - gap + one.mean
            if answer >= soonest or (one_weight := one.weight_at(self._transaction, FORGETTING_WAITS)) < ENOUGH:
                continue
            if here.mean - answer > SURE * math.sqrt(max(here.variance, one.variance) * (1 / weight + 1 / one_weight)):
                best, soonest = place, answer
        saves = min(here.late * RETRY, soonest)
        longest = min(at + int(saves / STEP), len(self._delays) - 1)
        if longest <= at or self._transaction < self._next_trial:
            return best
        self._next_trial = self._transaction + min(2 << self._trials // TRIALS, RARELY)
        self._trials += 1
        return at + 1 + self._trials % (longest - at)
