"""Limits the size of requests to a node, once some were too large for its line.

A request that cannot cross the line within request.timeout.ms is never answered, however often it is sent, and its
batches, and those on the wire behind it, are sent again. So a node whose request timed out gets requests of at most
half its size. A larger batch goes alone, after all smaller ones. Early answers raise the limit again, and each at least
twofold while twice as much would not take longer than half of the time that is left for the size. Any request,
however small, takes a fixed time on its way, which the connection's first answer shows, and one of the broker. The
answer with the fewest bytes for each request ahead of it so far shows that: unless what others take grows with their
bytes in proportion, give or take CHANCE.

A time-out says something about the size only if the request was the first unanswered one for long: otherwise it waited
for those ahead of it (``timely_window``). If requests as large were answered early before, the broker was away, and its
line is not slow: such a time-out limits nothing. After each one only requests SPARE times smaller prove as much, until
there is an early answer again. After two time-outs, and no answer to a request as large between them, the line is slow:
requests have at most a part in SPARE of the size.

Batches grow while they wait, and one that has been sent is split only if its line has become slow. So on the way to a
node none grows beyond what the line has shown to carry in time, by the same rule with as many of them under way as may
be (max.in.flight.requests.per.connection), and none before it has carried anything.
"""

from __future__ import annotations

import math
from typing import Final, final

from mypy_extensions import i64

from aioproducer.producer.batches.producer_batch import LEAST_WHOLE, NO_LIMIT

SPARE: Final = 8
"""The safety factor on the capacity that an answer suggests: five requests are under way by default, and the line may
have other traffic later."""

CHANCE: Final = 0.05
"""The part of the time to an answer by which it may differ from another's by chance."""

LONGER: Final = 1.5
"""A request takes longer than the one before it, for its size, if it takes this many times as long."""


@final
class LineLimit:
    """The limit of one node. Sizes are in bytes, times in seconds of the loop's clock."""

    def __init__(self, timeout: float, pause: float, largest: int, beside: int) -> None:
        """``timeout``: request.timeout.ms; ``pause``: the longest back-off of a retry; ``largest``: request;
        ``beside``: how many others may be under way with one."""
        self.most: i64 = NO_LIMIT
        """The most bytes of batches in one request, unless it has only one."""
        self.slow = False
        """Requests have timed out again and again, and ``most`` holds since: no batch should be larger."""
        self.grown: i64 = 0
        """The most bytes to which a batch may grow while it waits, and of a request with others beside it; 0 until a
        request has been answered or has timed out, and with acks=0, where nothing is answered."""
        self.way: float = 0.0
        """The time that the way takes for a request of any size."""
        self.large_at: float = 0.0
        """No larger batch goes before this time. Batches lost with a request are sent again until then."""
        self._timeout = timeout
        self._pause = pause
        self._largest = largest
        self._beside = float(beside)
        self._late: i64 = 0
        """Time-outs, but for requests that waited for others, since a request as large as the smallest was answered."""
        self._late_size: i64 = NO_LIMIT
        """The size of the smallest."""
        self._deferred_at: float = math.inf
        self._unanswered: i64 = 0
        self._early: i64 = NO_LIMIT
        """The most bytes of a request that would be answered early if it went alone."""
        self._carried: i64 = 0
        """The largest request that was answered in half of the time; less with each time-out since."""
        self._showed: i64 = 0
        """The bytes that the answer which set ``grown`` had ahead of it: one with more knows better."""
        self._moved_at: float = -math.inf
        """When a request was answered or timed out last: the next has been the first unanswered one since."""
        self._served: float = 0.0
        """How long the last one that was answered had been the first."""
        self._least: float = math.inf
        """The fewest bytes for each request that an answer had ahead of it since the last time-out, with its own."""
        self._least_took: float = 0.0
        """The time that each of them took, without the way."""

    def connected(self, greeting: float) -> None:
        """There is a connection, whose first answer took ``greeting`` seconds."""
        self.way = greeting

    def deferred(self, now: float) -> None:
        """Smaller batches go before a larger one that is ready."""
        self._deferred_at = min(self._deferred_at, now)

    def large_is_due(self, now: float) -> bool:
        """Whether a larger batch has waited behind smaller ones for as long as a request may take."""
        return now - self._deferred_at >= self._timeout and now >= self.large_at

    def large_sent(self) -> None:
        self._deferred_at = math.inf

    def room(self) -> i64:
        """The most bytes of a request that would be answered early behind those that are unanswered."""
        return max(self._early - self._unanswered, 0)

    def sent(self, size: i64) -> i64:
        """A request of ``size`` bytes leaves. Returns the bytes that are unanswered with these."""
        self._unanswered += size
        return self._unanswered

    def ended(self, size: i64) -> None:
        """A request of ``size`` bytes has ended without an answer."""
        self._unanswered -= size

    def timed_out(self, size: int, sent_at: float, now: float) -> None:
        """A request of ``size`` bytes was not answered in time."""
        served, self._moved_at = now - max(sent_at, self._moved_at), now
        if served < min(max(self._timeout / 2, LONGER * self._served), self._timeout):
            return
        self._late += 1
        self._late_size = min(self._late_size, i64(size))
        if size <= self._carried:
            self._carried //= SPARE
            return
        self.slow |= self._late > 1
        half = i64(size // 2)
        self.most = min(self.most, max(i64(size // SPARE), min(half, LEAST_WHOLE)) if self.slow else half)
        self.grown = self._shared()
        self._early = min(self._early, half)
        self.large_at = now + self._pause
        self._least = math.inf

    def answered(self, size: i64, ahead: i64, requests: i64, took: float, now: float) -> None:
        """A request of ``size`` bytes was answered ``took`` seconds after it was sent. ``ahead`` is what :meth:`sent`
        returned, of ``requests`` requests with this one: in that time the line has carried as much."""
        self._unanswered -= size
        self._served, self._moved_at = now - max(now - took, self._moved_at), now
        way = self.way = min(self.way, took)
        # The way does not always take the same time, so less than it says little.
        carried = float(ahead) * (self._timeout - way) / SPARE / max(took - way, way, 0.001)
        if float(ahead) <= self._least * float(requests):
            self._least = float(ahead) / float(requests)
            self._least_took = (took - way) / float(requests)
        if took <= (self._timeout + way) / 2:
            self._carried = max(self._carried, size)
        fixed, each = self._cost(ahead, requests, took)
        self._early = i64(int(min((self._timeout - fixed) / 2 / each, 1e18)))
        left = (self._timeout + fixed) / 2 - took
        grown = max(carried, _larger(size, each, left, self._beside))
        slow = grown < float(size) or 2 * size >= self.grown or ahead >= self._showed  # otherwise it was only small
        if slow or grown > float(self.grown):
            self.grown, self._showed = i64(int(grown)), ahead
        largest = max(carried, float(size))
        if largest < self._largest:
            largest = max(largest, _larger(size, each, left, 0.0))
        if largest >= self._largest:
            self.most = NO_LIMIT
            self.slow = False
        else:
            self.most = max(self.most, i64(int(largest)))
        if self.most < NO_LIMIT:
            self.grown = max(self.grown, self._shared())
        if size >= self._late_size or largest >= self._largest:
            self._late = 0
            self._late_size = NO_LIMIT

    def _shared(self) -> i64:
        """The size of which as many as may be under way make the largest request."""
        return i64(int(float(self.most) / (self._beside + 1.0)))

    def _cost(self, ahead: i64, requests: i64, took: float) -> tuple[float, float]:
        """What an answer shows: the seconds that any request takes, and those for each byte."""
        fixed, more = self.way, float(ahead)
        if (took - fixed) * (1.0 + CHANCE) < self._least_took * more / self._least:  # less than in proportion
            fixed = min(fixed + float(requests) * self._least_took, took)
            more -= float(requests) * self._least
        return fixed, max((took - fixed) / more, 1e-12)


def _larger(size: i64, each: float, left: float, beside: float) -> float:
    """The largest size, at most twice ``size``, of which a request with ``beside`` others takes at most ``left``
    seconds longer than one of ``size`` took; 0 if no larger one does. ``each``: the seconds for a byte."""
    left -= each * float(size) * beside
    return float(size) + min(float(size), left / each / (beside + 1.0)) if left > 0.0 else 0.0
