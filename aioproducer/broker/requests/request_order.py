"""Keeps the requests of a connection in order if handling them takes several turns of the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from aioproducer.broker.requests.request import Connection, Request


class RequestOrder:
    """The connections with a request that is still worked on after its handler has returned.

    A connection has one request at a time until its client disconnects. Then its other complete requests are handled,
    and they must not overtake the current one (records sent with acks=0).
    """

    def __init__(self) -> None:
        self._waiting: dict[Connection, deque[tuple[Request, Callable[[], object]]]] = {}

    def is_busy(self, connection: Connection) -> bool:
        """Whether one of its requests is being worked on."""
        return connection in self._waiting

    def run(self, request: Request, start: Callable[[], object]) -> None:
        """Starts the work on a request as soon as the earlier ones have :meth:`ended`."""
        waiting = self._waiting.get(request.connection)
        if waiting is None:
            self._waiting[request.connection] = deque()
            start()
        else:
            waiting.append((request, start))

    def ended(self, connection: Connection) -> None:
        """Called when the work on the current request has ended."""
        waiting = self._waiting[connection]
        if waiting:
            request, start = waiting.popleft()
            request.call_back(start)
        else:
            del self._waiting[connection]
