"""The lines of a log about logins that have failed: who, from where, and never more than a few at a time.

Rules of state and ``now`` (seconds). Failures without a line are counted; the number is logged with the next failure,
or when the listener is closed.
"""

from __future__ import annotations

from collections import Counter

from aioproducer.printable import printable

INTERVAL = 10.0
"""Seconds in which there are a limited number of lines."""

LINES = 10
NAMED = 5
"""Users that a summary names."""

_KNOWN = 1000
"""Users and addresses that are counted separately; all others are counted as one."""

_LONGEST_NAME = 100

_OTHERS = ("", "")


class FailedLogins:
    """Of one listener of a node."""

    def __init__(self, listener: str) -> None:
        self._listener = listener
        self._since = 0.0
        self._lines = 0
        self._more: Counter[tuple[str, str]] = Counter()

    def failed(self, user: str, address: str, why: str, now: float) -> list[str]:
        """The lines to log now. ``user`` is who the client says it is; empty if it has not said."""
        lines = []
        if now - self._since >= INTERVAL:
            lines = self.rest(now)
            self._since, self._lines = now, 0
        if self._lines < LINES:
            self._lines += 1
            lines.append(f"a login {_who(user, address)} on listener {self._listener} failed: {why}")
        else:
            who = user[:_LONGEST_NAME], address
            self._more[who if who in self._more or len(self._more) < _KNOWN else _OTHERS] += 1
        return lines

    def rest(self, now: float) -> list[str]:
        """A summary of the failures that no line has counted; none if there are none."""
        if not self._more:
            return []
        more, self._more = self._more, Counter()
        total, seconds = more.total(), now - self._since
        del more[_OTHERS]
        first = more.most_common(NAMED)
        parts = [f"{_who(*who)} ({count})" for who, count in first]
        others = total - sum(count for _, count in first)
        if others:
            parts.append(f"others ({others})")
        return [f"{total} more logins on listener {self._listener} failed in {seconds:.0f} s: {', '.join(parts)}"]


def _who(user: str, address: str) -> str:
    return f"as {printable(user[:_LONGEST_NAME])!r} from {address}" if user else f"from {address}"
