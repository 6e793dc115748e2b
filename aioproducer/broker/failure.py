"""The failure because of which a cluster must be closed."""

from __future__ import annotations

import asyncio


class Failure:
    """Happens at most once, and keeps its first reason."""

    def __init__(self) -> None:
        self._reason = ""
        self._happened = asyncio.Event()

    def happen(self, reason: str) -> None:
        if not self._happened.is_set():
            self._reason = reason
            self._happened.set()

    async def wait(self) -> str:
        """Waits for the failure, and returns its reason."""
        await self._happened.wait()
        return self._reason
