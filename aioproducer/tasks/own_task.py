"""Tasks that the package starts for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def start_task(work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
    """A task that begins in the next turn of the running loop, when its owner has it.

    The loop's own factory may begin it at once (``asyncio.eager_task_factory``), in the middle of what its owner does
    and before the owner has it.
    """
    return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name)
