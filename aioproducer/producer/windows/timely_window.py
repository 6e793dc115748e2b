"""Limits the requests to a node that are unanswered at once, so that each is answered within request.timeout.ms.

Kafka handles the requests of a connection one after the other, so the time to an answer grows with the requests ahead.
Where a broker takes long for each, the last of five may time out though one alone would be answered. A time-out ends
the connection, and all of them are sent again. So after a time-out one request is under way, as after TCP's (RFC 5681),
and each answer allows twice as many while the last of them would be answered in half of the time. An answer that took
longer than that allows fewer at once, before any is late. One that had fewer requests ahead of it than there may be
says less: brokers may answer several in the time of one. So it only makes sure that all of them are answered in time,
and after every few answers to a single request two are tried.

What the way takes, no matter how many are under way, is known from the first answer of the connection.
"""

from __future__ import annotations

from typing import Final, final

LEAST: Final = 1e-6
"""Seconds that a request takes at least."""

IN_TIME: Final = 0.9
"""The part of request.timeout.ms in which an answer is surely in time."""

FEW: Final = 4
"""Answers to single requests after which two are tried."""


@final
class TimelyWindow:
    """The window of one node. Times are in seconds."""

    def __init__(self, most: int, timeout: float) -> None:
        """``most``: max.in.flight.requests.per.connection; ``timeout``: request.timeout.ms."""
        self.places: int = most
        """The requests that may be unanswered, of any kind."""
        self._most = most
        self._timeout = timeout
        self._way: float = 0.0
        self._alone: int = 0
        """Answers to single requests since two were tried."""

    def is_full(self, unanswered: int) -> bool:
        """Whether one more request than these might not be answered in time."""
        return unanswered >= self.places

    def connected(self, greeting: float) -> None:
        """There is a connection, whose first answer took ``greeting`` seconds."""
        self._way = greeting

    def timed_out(self) -> None:
        """A request was not answered in time."""
        self.places = 1
        self._alone = 0

    def answered(self, took: float, ahead: int) -> None:
        """A request was answered after ``took`` seconds; so many were unanswered when it left, with itself."""
        way = self._way = min(self._way, took)
        each = max((took - way) / ahead, LEAST)
        early = (self._timeout - way) / 2 / each
        in_time = (IN_TIME * self._timeout - way) / each
        fit = early if ahead >= self.places else max(early, in_time)
        if fit < self.places:
            self.places = max(1, int(fit))
        elif early > self.places:
            self.places = int(min(self._most, early, 2 * self.places))
        if self.places == 1 < self._most and in_time >= 2:
            self._alone += 1
            if self._alone == FEW:
                self.places, self._alone = 2, 0
