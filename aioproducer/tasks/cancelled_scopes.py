"""Clean-up in a scope of anyio that was cancelled: such a scope cancels whatever its tasks await, again and again."""

from __future__ import annotations

import math
import sys
from contextlib import AbstractContextManager, nullcontext


def completed_in_cancelled_scopes() -> AbstractContextManager[object]:
    """Within it, a scope that was cancelled before cancels nothing.

    FastAPI, Starlette and others cancel with anyio, by levels. Asyncio cancels once, and then lets clean-up wait. This
    makes both alike. ``task.cancel()`` still ends the wait.
    """
    if "anyio" not in sys.modules:
        return nullcontext()
    from anyio import CancelScope, current_effective_deadline

    return CancelScope(shield=True) if current_effective_deadline() == -math.inf else nullcontext()
