"""How much memory records may take on their way to clients that do not read them."""

from __future__ import annotations

from aioproducer.broker.request import Request

SIZE = 128 * 1024 * 1024
"""Bytes of all responses of a node that are not over."""

_SHARE = 4


class ResponseMemory:
    """Bytes of records in responses that the kernel has not taken over yet.

    A response may have a quarter of what is left, so that a few large ones leave something for others. One batch may be
    read in any case, or nobody could go on.
    """

    def __init__(self, size: int = SIZE) -> None:
        self._left = size

    @property
    def left(self) -> int:
        """Bytes; negative by as much as single batches exceed the limit."""
        return self._left

    def take(self, request: Request, wanted: int) -> Taken:
        """As many bytes as a response may have of the ``wanted``, until the request is over."""
        taken = Taken(self, max(min(wanted, self._left // _SHARE), 0))
        request.when_over(taken.give_back)
        return taken

    def add(self, count: int) -> None:
        self._left -= count


class Taken:
    """The part of one request."""

    __slots__ = ("_is_over", "_memory", "size")

    def __init__(self, memory: ResponseMemory, size: int) -> None:
        self._memory = memory
        self._is_over = False
        self.size = size
        memory.add(size)

    def settle(self, size: int) -> None:
        """It is this much in the end."""
        if not self._is_over:
            self._memory.add(size - self.size)
            self.size = size

    def give_back(self) -> None:
        """The request is over."""
        self.settle(0)
        self._is_over = True
