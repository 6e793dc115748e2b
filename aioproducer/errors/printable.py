"""Text that came from the network or from a user, on its way into an error or a log line."""

from __future__ import annotations

from typing import Final

MOST: Final = 20_000
"""Characters; of a longer text the middle is left out."""

_END: Final = 1000


def printable(text: str) -> str:
    """The text with an escape for each character that would break a line, or that a terminal would obey."""
    shown = text
    if len(text) > MOST:
        shown = f"{text[: MOST - _END]} … ({len(text) - MOST} more characters) … {text[-_END:]}"
    if shown.isprintable():
        return shown
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in shown)
