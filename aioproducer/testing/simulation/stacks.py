"""The places where tasks wait, in words."""

from __future__ import annotations

import asyncio
from types import CodeType
from typing import Any


def who_waits(loop: asyncio.AbstractEventLoop) -> list[str]:
    """A line for each task: its name, and the places where it awaits, outermost first."""
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    return [f"{task.get_name()}: {' > '.join(_places(task.get_coro()))}" for task in tasks]


def _places(coroutine: Any) -> list[str]:
    places = []
    while coroutine is not None:
        code: CodeType | None = getattr(coroutine, "cr_code", None) or getattr(coroutine, "gi_code", None)
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if code is None or frame is None:
            break
        places.append(f"{code.co_qualname} ({code.co_filename.rpartition('/')[2]}:{frame.f_lineno})")
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return places
