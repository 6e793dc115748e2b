"""Work that gives turns, done without any."""

from __future__ import annotations

from collections.abc import Iterable


def exhaust(steps: Iterable[None]) -> None:
    """Goes through all of them."""
    for _ in steps:
        pass
