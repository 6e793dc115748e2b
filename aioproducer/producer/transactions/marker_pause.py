"""Keeps the first records and offsets of a transaction back until the markers of the last one are written.

A coordinator answers EndTxn when the decision is in its log, and has the markers written afterwards. Until they are, it
adds no partition to the next transaction (``CONCURRENT_TRANSACTIONS``). In the second protocol the broker that gets the
records then asks it again after 20 ms (``add.partitions.to.txn.retry.backoff.ms``), and in the first one the producer
does. So records that come a moment too early take 20 ms, although the markers of most transactions take one or two.

How long they take is learnt: records that came too early make the pause a step longer, and those that did not make it
a little shorter, so that about one transaction in :data:`RARELY` is too early. Where the longest pause is too short,
there is none for a while.
"""

from __future__ import annotations

import math
from typing import Final

RETRY: Final = 0.02
"""Seconds after which a broker asks the coordinator again (Kafka's default)."""
MOST: Final = RETRY / 2
"""Seconds of the longest pause: a longer one would save too little."""
STEP: Final = 0.0005
RARELY: Final = 400
REST: Final = 200
"""Transactions without a pause, after one that was the longest and too short."""
GAIN: Final = 0.125
"""The weight of the newest observation in an average, as TCP has it for round trips (RFC 6298)."""


class MarkerPause:
    """The pause between the answer to EndTxn and the first records. All times are in seconds, of one clock."""

    def __init__(self) -> None:
        self.length = 0.0
        """Seconds from the answer to EndTxn."""
        self._ended = -math.inf
        self._end_takes = 0.0
        """The average time of EndTxn: a broker that is asked to append records needs about as long."""
        self._judged = True
        """Whether the present transaction was too early is known already."""
        self._resting = 0
        """Transactions until the next pause."""

    def ended(self, took: float, now: float) -> None:
        """The coordinator has answered EndTxn after ``took`` seconds."""
        self._end_takes += (GAIN if self._end_takes else 1.0) * (took - self._end_takes)
        self._ended = now
        self._judged = False

    def over_at(self) -> float:
        """When records of the next transaction may be sent."""
        return self._ended + self.length

    def answered(self, sent_at: float, now: float) -> None:
        """Records of the second protocol that were sent at ``sent_at`` are answered; the first answer of a transaction
        says whether it was too early."""
        self._judge(sent_at, too_early=now - sent_at >= RETRY + self._end_takes)

    def added(self, asked_at: float) -> None:
        """A coordinator that was asked to has added partitions or offsets."""
        self._judge(asked_at, too_early=False)

    def refused(self, asked_at: float) -> None:
        """A coordinator that was asked to has answered ``CONCURRENT_TRANSACTIONS``."""
        self._judge(asked_at, too_early=True)

    def _judge(self, began: float, *, too_early: bool) -> None:
        if self._judged or began > self._ended + MOST:
            return  # so late that it says nothing of pauses
        self._judged = True
        if self._resting:
            self._resting -= 1
        elif not too_early:
            self.length = max(0.0, self.length - STEP / RARELY)
        elif self.length < MOST:
            self.length = min(MOST, self.length + STEP)
        else:
            self.length, self._resting = 0.0, REST
