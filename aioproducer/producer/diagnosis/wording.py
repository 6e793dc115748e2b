"""Numbers and times in the words of log lines and errors."""

from __future__ import annotations


def counted(number: int, noun: str, nouns: str = "") -> str:
    """A count with its noun; ``nouns`` is the plural, if it is not the regular one."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or noun + 's'}"


def duration(seconds: float) -> str:
    """A readable duration: ``420 ms``, ``3.4 s``, ``86 s``."""
    if seconds < 1:
        return f"{max(seconds, 0.0) * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
