"""Log lines for connections that the broker closes: a few for each kind of reason, and the number of the others.

Rules of state and ``now`` (seconds). A client that reconnects again and again neither fills the log nor silences the
reasons of others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

INTERVAL = 10.0
"""Seconds for which the lines of one kind are limited."""

LINES = 10
"""Lines of one kind per interval, each with another reason."""

MAX_KINDS = 100
"""Kinds that are counted separately. All later ones are counted as one."""

_OTHER = "other reasons"
_NUMBER = re.compile(r"\d+")


@dataclass
class _Kind:
    since: float
    logged: set[str] = field(default_factory=set)
    more: int = 0


class ClosedConnections:
    """The closed connections of one node, by kind: the reason without its numbers and what follows a colon."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    def closed(self, connection_id: str, reason: str, now: float) -> list[str]:
        """The lines to log now."""
        name = _NUMBER.sub("N", reason.partition(":")[0])
        if name not in self._kinds and len(self._kinds) >= MAX_KINDS:
            name = _OTHER
        kind = self._kinds.setdefault(name, _Kind(now))
        lines = []
        if now - kind.since >= INTERVAL:
            lines += _summary(name, kind, now)
            kind = self._kinds[name] = _Kind(now)
        if reason in kind.logged or len(kind.logged) >= LINES:
            kind.more += 1
        else:
            kind.logged.add(reason)
            lines.append(f"closing the connection {connection_id}: {reason}")
        return lines

    def rest(self, now: float) -> list[str]:
        """The lines about all connections that no line has counted; none is counted after that."""
        kinds, self._kinds = self._kinds, {}
        return [line for name, kind in kinds.items() for line in _summary(name, kind, now)]


def _summary(name: str, kind: _Kind, now: float) -> list[str]:
    if not kind.more:
        return []
    return [f"closed {kind.more} more connections in {now - kind.since:.0f} s for reasons of the kind: {name}"]
