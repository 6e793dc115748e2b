"""Frames of window functions."""

from __future__ import annotations

from pyspark.sql import Window, WindowSpec


def rows_before(window: WindowSpec) -> WindowSpec:
    """The rows before each row, in the order of the window."""
    return window.rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
