"""Tells the user's coroutine functions from plain ones."""

from __future__ import annotations

import inspect


def is_async(function: object) -> bool:
    """Whether it is a coroutine function, or an object that is called like one."""
    return inspect.iscoroutinefunction(function) or (
        callable(function) and inspect.iscoroutinefunction(type(function).__call__)
    )
