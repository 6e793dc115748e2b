"""Log lines about failed logins, with their users and addresses, limited to a few at a time.

These are rules of state and ``now`` (seconds). Failures beyond the limit are counted; the count is logged with the next
failure, or when the listener is closed.
"""

from __future__ import annotations

from collections import Counter

from aioproducer.errors.printable import printable

INTERVAL = 10.0
"""The seconds for which the number of lines is limited."""

LINES = 10
NAMED = 5
"""How many users a summary names."""

_KNOWN = 1000
"""How many users and addresses are counted separately; all others are counted together."""

_LONGEST_NAME = 100

_OTHERS = ("", "")


class FailedLogins:
    """The failed logins of one listener of a node."""

    def __init__(self, listener: str) -> None:
        self._listener = listener
        self._since = 0.0
        self._lines = 0
        self._more: Counter[tuple[str, str]] = Counter()

    def failed(self, user: str, address: str, why: str, now: float) -> list[str]:
        """Counts a failure, and returns the lines to log now. ``user`` is the name that the client sent; empty if it
        has sent none."""
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
        """A summary of the failures that no line mentions; empty if there are none."""
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
