"""Requests of one connection whose handling takes turns of the loop stay in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from aioproducer.broker.requests.request import Connection, Request


class RequestOrder:
    """The connections with a request that is worked on after its handler has returned.

    A connection has one request at a time, until its client is gone: what was received whole is handled then, and must
    not overtake what is under way (records sent with acks=0).
    """

    def __init__(self) -> None:
        self._waiting: dict[Connection, deque[tuple[Request, Callable[[], object]]]] = {}

    def is_busy(self, connection: Connection) -> bool:
        """Whether one of its requests is under way."""
        return connection in self._waiting

    def run(self, request: Request, start: Callable[[], object]) -> None:
        """Starts to work on a request as soon as those before it have :meth:`ended`."""
        waiting = self._waiting.get(request.connection)
        if waiting is None:
            self._waiting[request.connection] = deque()
            start()
        else:
            waiting.append((request, start))

    def ended(self, connection: Connection) -> None:
        """The request under way is done with."""
        waiting = self._waiting[connection]
        if waiting:
            request, start = waiting.popleft()
            request.call_back(start)
        else:
            del self._waiting[connection]
