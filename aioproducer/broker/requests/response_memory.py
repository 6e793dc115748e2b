"""How much memory records may take on their way to clients that do not read them."""

from __future__ import annotations

from functools import partial

from aioproducer.broker.requests.request import Request

SIZE = 128 * 1024 * 1024
"""Bytes of all responses of a node that are not over."""

_SHARE = 4

_MOST = 8 * 1024 * 1024
"""Bytes of one response: more of a file at once would hold up the others."""

_SMALL = 64 * 1024
"""Bytes of a response that is not counted: most are smaller, and a connection has one at a time."""


class ResponseMemory:
    """Bytes of records in responses that the kernel has not taken over yet.

    A response may have a quarter of what is left, so that a few large ones leave something for others, and 8 MiB at
    most. One batch may be read in any case, or no client could make progress.
    """

    def __init__(self, size: int = SIZE) -> None:
        self.left = size
        """Bytes; negative by as much as single batches exceed the limit."""

    @property
    def share(self) -> int:
        """Bytes that the next response may have."""
        return min(max(self.left // _SHARE, 0), _MOST)

    def take(self, request: Request, size: int) -> None:
        """The response to a request has this many bytes, until the request is over."""
        if size > _SMALL:
            self.left -= size
            request.when_over(partial(self._give_back, size))

    def _give_back(self, size: int) -> None:
        self.left += size
