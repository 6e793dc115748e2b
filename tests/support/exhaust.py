"""Runs work that is done in steps, without pauses."""

from __future__ import annotations

from collections.abc import Iterable


def exhaust(steps: Iterable[None]) -> None:
    """Takes all steps."""
    for _ in steps:
        pass
