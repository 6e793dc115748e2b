"""Text that came from the network or from a user, on its way into an error or a log line."""

from __future__ import annotations

from typing import Final

MOST: Final = 10_000
"""Characters; what exceeds them is left out."""


def printable(text: str) -> str:
    """The text with an escape for each character that would break a line, or that a terminal would obey."""
    shown = text if len(text) <= MOST else f"{text[:MOST]}… ({len(text)} characters)"
    if shown.isprintable():
        return shown
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in shown)
