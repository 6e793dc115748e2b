"""Names of configs as errors show them: where a name should be, there may be a line of a key, or a password.

This happens when a value in a ``.properties`` file continues in the next line without a backslash, or when its ``=`` is
escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

NOT_SHOWN: Final = "whose name is not shown, because it does not look like one and may be a secret"

# Compiled on first use: only errors need them.
_DOTTED: Final = r"[a-z][a-z0-9-]{0,23}(\.[a-z0-9][a-z0-9-]{0,23})+"
_WORD: Final = r"[A-Za-z]{1,24}"
_LONGEST: Final = 120
_OF_OTHER_CLIENTS: Final = frozenset({"brokers", "debug", "logger", "loop", "topic", "topics"})


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like it, ignoring case; None if none is."""
    import difflib

    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[near[0]] if near else None


def is_dotted(name: str) -> bool:
    """Whether it has the form of Kafka's names: two or more short words, joined by dots."""
    return len(name) <= _LONGEST and re.fullmatch(_DOTTED, name) is not None


def may_show(name: str, known: Iterable[str]) -> bool:
    """Whether an error may show an unknown name. A single word must be like a known name, a part of one, or an argument
    of another client."""
    if not name or is_dotted(name):
        return True
    known = list(known)
    words = _OF_OTHER_CLIENTS.union(*(one.split(".") for one in known))
    return re.fullmatch(_WORD, name) is not None and (name in words or nearest(name, known) is not None)
