"""Bounds the memory of records on their way to clients that do not read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from aioproducer.broker.requests.request import Request

SIZE = 128 * 1024 * 1024
"""Bytes of all unfinished responses of a node."""

_SHARE = 4

_MOST = 8 * 1024 * 1024
"""Bytes of one response: reading more of a file at once would delay other requests."""

_SMALL = 64 * 1024
"""Responses of at most this many bytes are not counted: most are smaller, and each connection has one at a time."""


class ResponseMemory:
    """Bytes of records in responses that the kernel has not accepted yet.

    A response gets a quarter of what is left, so that a few large ones leave room for others, and 8 MiB at most. One
    batch may always be read, or no client could make progress.
    """

    def __init__(self, size: int = SIZE) -> None:
        self.left = size
        """Bytes that are left; negative if single batches exceed the limit."""

    @property
    def share(self) -> int:
        """How many bytes the next response may have."""
        return min(max(self.left // _SHARE, 0), _MOST)

    @contextmanager
    def reserved(self, size: int) -> Iterator[None]:
        """Counts these bytes while a response is read."""
        self.left -= size
        try:
            yield
        finally:
            self.left += size

    def take(self, request: Request, size: int) -> None:
        """Counts the bytes of a response until its request is over."""
        if size > _SMALL:
            self.left -= size
            request.when_over(partial(self._give_back, size))

    def _give_back(self, size: int) -> None:
        self.left += size
