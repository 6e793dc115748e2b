"""Settings of the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final


def tuned() -> None:
    """As docs/performance.md says, to be called when everything is made that will stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


COLLECTORS: Final[dict[str, Callable[[], None]]] = {"default": lambda: None, "tuned": tuned}
"""By name."""
