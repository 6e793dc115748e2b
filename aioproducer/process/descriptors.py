"""File descriptors of this process: the last ones are for files, and connections may not use them up."""

from __future__ import annotations

import errno

try:
    import resource
except ImportError:  # not on this system, which has no such limit
    resource = None  # type: ignore[assignment]

RESERVED = 32
"""Descriptors that no connection gets; a quarter of all if there are few."""

SCARCE = frozenset({errno.EMFILE, errno.ENFILE})
"""What it is called when there are none left, which passes."""

_MOST = 1024 * 1024


def limit() -> int | None:
    """How many this process may have at a time."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def is_reserved(descriptor: int) -> bool:
    """Whether it is one of the last. The system gives out the lowest that is free."""
    most = limit()
    return most is not None and descriptor >= most - min(RESERVED, most // 4)


def raise_limit() -> None:
    """Lets this process have as many as it is allowed to. Many systems start with 1024, or 256."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            pass  # macOS allows less than it says
