"""Types of command line arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable


def positive(text: str) -> int:
    """A type of argparse: an int from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not at least 1")
    return number


def numbers(text: str) -> list[int]:
    """A type of argparse: such ints, separated by commas."""
    return [positive(size) for size in text.split(",")]


def some_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """A type of argparse: some of the known names, separated by commas."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def list_of(names: Iterable[str]) -> str:
    """The help of such an argument."""
    return f"of {', '.join(names)}; separated by commas"
