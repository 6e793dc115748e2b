"""The machine's wall clock, read once for every record without a timestamp."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

from mypy_extensions import i64

if TYPE_CHECKING:
    # Compiled code reaches this through librt's C interface; interpreted code never uses it (see record_writer.py).
    from librt.time import time


def now_ms() -> i64:
    """Milliseconds since the epoch."""
    return i64(time() * 1000.0)


if hasattr(now_ms, "__code__") and not TYPE_CHECKING:
    # Interpreted: a native function has no code object.
    def now_ms() -> int:
        return time_ns() // 1_000_000
