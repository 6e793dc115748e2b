"""Clears the way to the disk: what earlier runs have sent, and is not written yet, would slow down the next."""

from __future__ import annotations

import asyncio
import os


async def write_page_cache() -> None:
    """Waits until the system has written everything to its disks; does nothing on Windows, which has no such call."""
    sync = getattr(os, "sync", None)
    if sync is not None:
        await asyncio.to_thread(sync)
