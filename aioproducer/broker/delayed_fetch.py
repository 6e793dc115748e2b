"""A fetch that waits for records."""

from __future__ import annotations

from collections.abc import Callable

from aioproducer.broker.delayed_operation import DelayedOperation
from aioproducer.broker.request import Request
from aioproducer.protocol.messages.fetch import FetchResponse


class DelayedFetch(DelayedOperation):
    """Answers a fetch request once there is enough to read or its time is up; never if its client is gone.

    ``read`` reads what there is now, and says whether that is enough.
    """

    def __init__(self, request: Request, max_wait_ms: int, read: Callable[[], tuple[FetchResponse, bool]]) -> None:
        super().__init__(max_wait_ms)
        self._request = request
        self._read = read
        self._response: FetchResponse | None = None
        request.on_abandon(self.abandon)

    def try_complete(self) -> bool:
        response, enough = self._read()
        if not enough:
            return False
        self._response = response
        return self.force_complete()

    def on_complete(self) -> None:
        self._request.respond(self._read()[0] if self._response is None else self._response)
