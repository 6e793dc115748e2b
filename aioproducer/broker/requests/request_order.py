"""Keeps the requests of a connection in order if handling them takes several turns of the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from aioproducer.broker.requests.request import Connection, Request


class _Place:
    """What a connection is busy with."""

    __slots__ = ("request", "waiting", "works")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.works = 1
        """Parts of the request that have not ended."""
        self.waiting: deque[tuple[Request, Callable[[], object]]] = deque()


class RequestOrder:
    """The connections with a request that is still worked on after its handler has returned.

    A connection has one request at a time until its client disconnects. Then its other complete requests are handled,
    and they must not overtake the current one (records sent with acks=0).
    """

    def __init__(self) -> None:
        self._places: dict[Connection, _Place] = {}

    def is_busy(self, connection: Connection) -> bool:
        """Whether one of its requests is being worked on."""
        return connection in self._places

    def run(self, request: Request, start: Callable[[], object]) -> None:
        """Starts a work on a request: as soon as the earlier requests of its connection have :meth:`ended`, and at once
        if another work on this request has not ended. So a request keeps its place from its first work to its last."""
        place = self._places.get(request.connection)
        if place is None:
            self._places[request.connection] = _Place(request)
            start()
        elif place.request is request:
            place.works += 1
            start()
        else:
            place.waiting.append((request, start))

    def ended(self, request: Request) -> None:
        """Called when a work on the current request has ended."""
        place = self._places[request.connection]
        place.works -= 1
        if place.works:
            return
        if place.waiting:
            place.request, start = place.waiting.popleft()
            place.works = 1
            place.request.call_back(start)
        else:
            del self._places[request.connection]
