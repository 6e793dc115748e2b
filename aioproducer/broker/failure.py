"""Why a cluster has to be closed."""

from __future__ import annotations

import asyncio


class Failure:
    """Happens once at most: the first reason stays."""

    def __init__(self) -> None:
        self._reason = ""
        self._happened = asyncio.Event()

    def happen(self, reason: str) -> None:
        if not self._happened.is_set():
            self._reason = reason
            self._happened.set()

    async def wait(self) -> str:
        """Returns the reason when it has happened."""
        await self._happened.wait()
        return self._reason
