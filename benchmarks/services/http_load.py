"""Clients of an HTTP service on this machine, each with a connection of its own and one request at a time.

They speak just enough of HTTP/1.1 to cost little beside the service: a fixed head, answers with a Content-Length.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, cast

HOST = "127.0.0.1"
RECONNECT = 0.02
"""Seconds before a refused connection is tried again."""


class Reply(NamedTuple):
    """What became of a request; ``status`` is None where the connection ended before its answer."""

    number: int
    status: int | None
    seconds: float


class HttpLoad:
    """POSTs ``body(number)``, as JSON, for number 0, 1, 2, …; ``replies`` are in the order of their ends.

    ``together``: no client sends a second request before all have had an answer. Otherwise a service that the
    first clients keep busy would accept the others one at a time, for minutes.

    ``period``: seconds from a client's request to its next one, or to the answer if that takes longer. The clients
    are spread over it, if they begin ``together``.
    """

    def __init__(
        self,
        port: int,
        path: str,
        body: Callable[[int], bytes],
        clients: int,
        *,
        together: bool = False,
        period: float = 0.0,
    ) -> None:
        self.replies: list[Reply] = []
        self.together = together
        self.period = period
        self._port = port
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Type: application/json\r\nContent-Length: "
        ).encode()
        self._body = body
        self._clients = clients
        self._next = 0
        self._stopped = False
        self._wanted = 0
        self._enough = asyncio.Event()
        self._first_answers: list[Callable[[], None]] = []
        self._all_answered = asyncio.Event()

    @contextlib.asynccontextmanager
    async def flowing(self, *, patience: float) -> AsyncIterator[None]:
        """Requests come from here to the end, which waits for all answers; TimeoutError after ``patience`` seconds."""
        clients = [asyncio.create_task(self._client()) for _ in range(self._clients)]
        try:
            yield
            self._stopped = True
            self._go_on()
            async with asyncio.timeout(patience):
                await asyncio.gather(*clients)
        finally:
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)

    async def _client(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopped:
            try:
                transport, protocol = await loop.create_connection(lambda: _Connection(self), HOST, self._port)
            except OSError:
                await asyncio.sleep(RECONNECT)
                continue
            try:
                await protocol.lost
            finally:
                transport.abort()

    async def answered(self, count: int) -> None:
        """Waits for a number of replies."""
        self._wanted = count
        while len(self.replies) < count:
            self._enough.clear()
            await self._enough.wait()

    async def all_answered(self) -> None:
        """Until each client has had an answer, and all are at work; only if they begin ``together``."""
        await self._all_answered.wait()

    def first_answer(self, ask: Callable[[], None]) -> None:
        """One client more has had an answer. ``ask`` is for its next request."""
        self._first_answers.append(ask)
        if len(self._first_answers) == self._clients:
            self._all_answered.set()
            self._go_on()

    def _go_on(self) -> None:
        waiting, self._first_answers = self._first_answers, []
        loop = asyncio.get_running_loop()
        for number, ask in enumerate(waiting):
            loop.call_later(self.period * number / len(waiting), ask)

    def ended(self, reply: Reply) -> None:
        """One request more."""
        self.replies.append(reply)
        if len(self.replies) >= self._wanted:
            self._enough.set()

    def next_request(self) -> tuple[int, bytes] | None:
        """Its number and bytes; None when there are to be no more."""
        if self._stopped:
            return None
        number, self._next = self._next, self._next + 1
        body = self._body(number)
        return number, b"%b%d\r\n\r\n%b" % (self._head, len(body), body)


class _Connection(asyncio.Protocol):
    """One connection: the next request goes when the last one is answered."""

    def __init__(self, load: HttpLoad) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._load = load
        self._transport: asyncio.Transport
        self._number: int | None = None
        self._began = 0.0
        self._received = b""
        self._asked_again = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def _ask(self) -> None:
        if self._transport.is_closing():
            return  # the service has closed it while it waited for the other clients
        request = self._load.next_request()
        if request is None:
            self._transport.close()
            return
        self._number = request[0]
        self._began = time.perf_counter()
        self._transport.write(request[1])

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        head = head.lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self._received = body[length:]
        self._ended(int(head[9:12]))
        if b"\r\nconnection: close" in head:
            self._transport.close()
        elif self._load.together and not self._asked_again:
            self._asked_again = True
            self._load.first_answer(self._ask)
        else:
            self._pause_then_ask()

    def _pause_then_ask(self) -> None:
        early = self._began + self._load.period - time.perf_counter()
        if early > 0:
            asyncio.get_running_loop().call_later(early, self._ask)
        else:
            self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended(None)
        if not self.lost.done():
            self.lost.set_result(None)

    def _ended(self, status: int | None) -> None:
        number, self._number = self._number, None
        if number is not None:
            self._load.ended(Reply(number, status, time.perf_counter() - self._began))
