"""The futures and callbacks that one pending result notifies when it ends."""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64


@final
class Listeners:
    """The futures and callbacks of a result's records, each with the index of its record."""

    def __init__(self) -> None:
        # Two lists in step instead of one of pairs: with many tasks awaiting, pairs would be a tenth of the cost here.
        self.waiters: list[Any] = []
        self.awaited: list[i64] = []
        self.callbacks: list[tuple[i64, Any]] | None = None
