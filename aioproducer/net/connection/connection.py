"""One TCP connection to a broker: requests out in order, answers back in the same order."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar, cast, final

from mypy_extensions import i64

from aioproducer.errors import KafkaError, NetworkException, SchemaException, TimeoutException
from aioproducer.metrics.network_metrics import NodeMetrics
from aioproducer.net.connection.in_flight_request import AT_ONCE, InFlightRequest, MessageRequest
from aioproducer.protocol.api_keys import APIS, VERSIONS_RESPONSE
from aioproducer.protocol.big_endian import int32_at
from aioproducer.protocol.frame_reader import FrameReader
from aioproducer.protocol.framing import RequestFrames
from aioproducer.protocol.schema import Request, Response
from aioproducer.timing.time_slice import TimeSlice

R = TypeVar("R", bound=Response)

_SIZE_BYTES: Final = 4
"""In front of every frame."""

LISTENS: Final = 0.002
"""Seconds for what the socket still has when a request is late: long enough that every event loop reads it once."""

_NO_LINGER: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""SO_LINGER: closing a socket drops what the kernel has not sent, and resets the connection."""


@final
class _Guard:
    """For methods that the event loop calls: it would only log an unforeseen error, and waiters would never end."""

    def __init__(self, on_crash: Callable[[BaseException], None]) -> None:
        self._on_crash = on_crash

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self._on_crash(error)
        return True


@final
class Connection:
    """Frames on a socket.

    Any violation (a time-out, an answer out of turn, bytes that are no message) closes the connection.
    ``on_closed(error)`` is called once, and every request without an answer ends with NetworkException, in turns of the
    loop: whether the broker acted on it is not known. Answers that came before a violation, or before the other side
    ended the connection, count. ``on_room()`` is called when there may be room for a request and nothing else reports
    it: a full socket takes bytes again, or a call was answered; ``on_throttled(milliseconds)`` when an answer
    throttles the client; ``on_crash(error)`` with what a handler raised, which is a bug. ``spare_buffers`` belong to
    all connections of a client: only a connection on which an answer is incomplete has one of its own.
    """

    def __init__(
        self,
        peer: str,
        *,
        client_id: str,
        request_timeout: float,
        send_buffer: int,
        write_buffer: int,
        on_closed: Callable[[Connection, KafkaError], None],
        on_room: Callable[[], None],
        on_throttled: Callable[[int], None],
        on_crash: Callable[[BaseException], None],
        metrics: NodeMetrics,
        spare_buffers: list[bytearray],
    ) -> None:
        self.peer = peer
        self.request_timeout = request_timeout
        self.in_flight: deque[InFlightRequest] = deque()
        self.last_active = 0.0
        self.answers = 0
        self.answered_at = -math.inf
        """When the last answer was handled, or began to be."""
        self.writable = False
        self.send_buffer: i64 = send_buffer
        """How many bytes that are sent the system may hold (SO_SNDBUF)."""
        self._write_buffer = write_buffer
        self._on_closed = on_closed
        self._on_room = on_room
        self._on_throttled = on_throttled
        self._on_crash = on_crash
        self._guard = _Guard(on_crash)
        self._metrics = metrics
        self._requests = RequestFrames(client_id)
        self._frames = FrameReader(VERSIONS_RESPONSE, spare_buffers, gathers=True, limit_of=self._largest_answer)
        self._read: bytes | memoryview | None = None
        """The large answer being read, which belongs to the oldest request."""
        self._answering: InFlightRequest | None = None
        """The request whose answer has been read and is handled over several turns of the loop."""
        self._unread: deque[bytes | memoryview] = deque()
        """Answers that arrived with these, or for which one turn of the loop was not enough."""
        self._receiving = True
        """Whether the socket is read from; not while any of these answers waits for the next turn."""
        self._continuing = False
        """The next turn handles more of them, or ends more requests."""
        self._heard = False
        """Bytes have arrived since the last look that found a request late."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        """None while the event loop has no socket: not yet, or not any more."""
        self._correlation_id: i64 = 0
        self._timer: asyncio.TimerHandle | None = None
        self._slice = TimeSlice(self._loop)
        self._stuck_at: float = math.inf
        """When a full socket counts as one that the broker does not read; requests without response (acks=0) wait for
        it."""
        self.error: KafkaError | None = None
        """Why it is closed; None while it is open."""
        self.unsettled = False
        """Whether its end leaves the fate of a request open. Without responses the fate is never known."""
        self._last_words: KafkaError | None = None
        """Why it closes when the requests under way have been answered."""
        self._closes_gracefully = False
        self._final: KafkaError | None = None
        """Why it closes when the answers received so far have been handled: no other will be read."""
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when it is closed, the event loop has let go of the socket, and all requests have ended."""

    def send(self, request: InFlightRequest, *, expect_response: bool = True) -> None:
        """Writes a request and reports its end to it. A request without response has no end to report."""
        transport = self._transport
        refusal = self.error or self._final or self._last_words
        if transport is None or refusal is not None:
            raise refusal or NetworkException(f"not connected to {self.peer}")
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        parts = request.body()
        size = self._requests.frame(request.api_key, request.version, self._correlation_id, parts)
        now = self.last_active = self._loop.time()
        if expect_response:
            request.correlation_id = self._correlation_id
            request.sent_at = now
            request.deadline = now + self.request_timeout
            self.in_flight.append(request)
            if self._timer is None:
                self._timer = self._loop.call_at(request.deadline, self._check_timeout)
        else:
            self.unsettled = True
        # In one go: each piece would wake the broker. A closing transport drops the write; `connection_lost` reports
        # it.
        if not transport.is_closing():
            transport.writelines(parts)
            if transport.get_write_buffer_size() > self._write_buffer and not transport.is_closing():
                # writelines of asyncio in CPython 3.12 and early 3.13 forgets to call pause_writing; this does not.
                transport.set_write_buffer_limits(high=self._write_buffer)
        self._metrics.request_sent(size, now)

    def call(
        self, request: Request, response_class: type[R], version: int, body: list[bytes | memoryview] | None = None
    ) -> asyncio.Future[R]:
        """Sends a request; the future is its answer, or what ended it. ``body`` is the message if it is written."""
        future: asyncio.Future[R] = self._loop.create_future()

        def settle(response: R | None, error: KafkaError | None) -> None:
            if not future.done():  # otherwise its caller was cancelled
                if error is not None:
                    future.set_exception(error)
                else:
                    assert isinstance(response, response_class)
                    future.set_result(response)
            if error is None:
                self._on_room()

        self.send(MessageRequest(request, version, settle, body))
        return future

    def unanswered_since(self) -> float:
        """When the oldest request without an answer was sent; NaN if there is none."""
        return self.in_flight[0].sent_at if self.in_flight else math.nan

    def close_when_answered(self, error: KafkaError, *, graceful: bool = False) -> None:
        """Takes no more requests, and closes when those under way have been answered."""
        self._last_words = error
        self._closes_gracefully = graceful
        if not self.in_flight and self._answering is None:
            self.close(error, graceful=graceful)

    def close(self, error: KafkaError, *, graceful: bool = False) -> None:
        """Ends the connection; everything still in flight ends with ``error`` as the reason.

        What the socket has not taken is dropped, unless ``graceful``. While a request waits for its answer, what the
        kernel has not sent is dropped, too: the request is sent again over another connection and must not reach the
        broker twice. A connection without such a request may carry the last records of acks=0, which are never sent
        again: the kernel sends them.
        """
        if self.error is not None:
            return
        self.error = error
        self.writable = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is None:
            pass
        elif graceful:
            self._transport.close()
        elif self.in_flight:
            _abort(self._transport)
        else:
            self._transport.abort()
        self._read = None
        self._unread.clear()
        self.unsettled |= len(self.in_flight) > 0
        self._continue()  # scheduled first: the requests end before what on_closed causes
        self._on_closed(self, error)

    def _settle(self) -> None:
        """Called when all requests have ended, or the event loop has let go of the socket."""
        if self._transport is None and not self.answers_wait() and not self.in_flight and not self.ended.done():
            self.ended.set_result(None)

    def unsent(self) -> int:
        """Bytes that the socket has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def resize_send_buffer(self, size: int) -> None:
        """Lets the system hold ``size`` bytes that are sent (SO_SNDBUF), as far as it allows so many."""
        self.send_buffer = size
        if self._transport is not None:
            _set_option(self._transport, socket.SO_SNDBUF, size)

    def abort(self) -> None:
        """Lets go of the socket without waiting for what was written to leave it."""
        if self._transport is not None:
            _abort(self._transport)

    def _check_timeout(self) -> None:
        with self._guard:
            # Answers come in order, so the oldest request is the only one that can be late: unless answers wait.
            self._timer = None
            oldest = self.in_flight[0] if self.in_flight and not self.answers_wait() else None
            due = self._stuck_at if oldest is None else min(oldest.deadline, self._stuck_at)
            now = self._loop.time()
            if due > now:
                if due < math.inf:
                    self._timer = self._loop.call_at(due, self._check_timeout)
            elif oldest is not None and oldest.deadline <= now and self._heard:
                self._heard = False  # its answer may be among what the socket still has
                self._timer = self._loop.call_at(now + LISTENS, self._check_timeout)
            elif oldest is not None and oldest.deadline <= now:
                waited = f"{(now - oldest.sent_at) * 1000:.0f} ms (request.timeout.ms)"
                self.close(TimeoutException(f"{self.peer} did not answer {oldest.name} within {waited}"))
            else:
                self._end(self.stuck())

    def stuck(self) -> TimeoutException:
        """Why a connection is given up of which no byte has left for so long."""
        allowed = f"{self.request_timeout * 1000:.0f} ms (request.timeout.ms)"
        return TimeoutException(f"{self.peer} did not take what was sent to it within {allowed}")

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        with self._guard:
            # uvloop's transports only look like asyncio's, so there is no isinstance to ask.
            transport = cast(asyncio.Transport, transport)
            self._transport = transport
            self._metrics.connected(self._loop.time())
            if self.error is not None:  # given up before it was made
                _abort(transport)
                return
            transport.set_write_buffer_limits(high=self._write_buffer)
            self.writable = True
            self.last_active = self._loop.time()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._frames.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        with self._guard:
            self._heard = True
            frames = self._frames.buffer_updated(nbytes)
            if self.error is not None:
                return
            if self._frames.large is not None:
                self._unread.append(self._frames.take_large())
            self._unread += frames
            if self._frames.error is not None:
                self._ends(self._frames.error)
            if not self._continuing:
                self._handle_answers()

    def _largest_answer(self, number: int) -> int:
        """The size limit of the frame that comes ``number`` frames after those not processed yet."""
        place = number + len(self._unread) + (0 if self._read is None else 1)
        if place >= len(self.in_flight):
            return VERSIONS_RESPONSE  # no open request expects it
        return APIS[self.in_flight[place].api_key].largest_response

    def answers_wait(self) -> bool:
        """Whether answers that were received wait for their turns of the loop."""
        return self._answering is not None or self._read is not None or len(self._unread) > 0

    def handle_received(self) -> None:
        """Handles these at once."""
        with self._guard:
            if self.error is None:
                self._handle_answers(at_once=True)

    def _continue(self) -> None:
        """Continues in the next turn of the loop."""
        if not self._continuing:
            self._continuing = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._continuing = False
        with self._guard:
            self._handle_answers()

    def _handle_answers(self, *, at_once: bool = False) -> None:
        """Handles what was received, in its order, and then, if the connection is closed, the end of the other
        requests: ``at_once``, or for a turn of the loop; then more may come."""
        begun = False
        self._slice.begin()
        try:
            while (
                self._unread
                or self._answering is not None
                or self._read is not None
                or (self.error is not None and self.in_flight)
            ):
                if begun and not at_once and self._slice.over():
                    self._receive(False)
                    self._continue()
                    return
                begun = True
                if self._answering is not None:
                    self._tell_answer(self._answering)
                elif self._read is not None:
                    self._read_on(self._read)
                elif self._unread:
                    self._answer(self._unread.popleft())
                else:
                    self._tell_loss(self.in_flight[0])
        except SchemaException as error:
            self.close(error)
        if self.error is not None:
            self._settle()
        elif self._final is not None:
            self.close(self._final)
        elif not at_once:
            if not self._receiving:
                self._receive(True)
            if self._timer is None and self.in_flight:
                self._timer = self._loop.call_at(self.in_flight[0].deadline, self._check_timeout)

    def _answer(self, frame: bytes | memoryview) -> None:
        if not self.in_flight:
            raise SchemaException(f"{self.peer} sent {len(frame)} bytes that answer no request")
        request = self.in_flight[0]
        if len(frame) < 4:
            raise SchemaException(f"{self.peer} answered {request.name} with {len(frame)} bytes")
        correlation_id = int32_at(bytes(frame[:4]), 0)
        if correlation_id != request.correlation_id:
            raise SchemaException(
                f"{self.peer} answered request {correlation_id}; "
                f"the next one due is {request.name} {request.correlation_id}"
            )
        if len(frame) > AT_ONCE and request.begin_reading(frame):
            self._read = frame
        else:
            self._take(request, frame, request.read(frame if isinstance(frame, bytes) else bytes(frame)))

    def _read_on(self, frame: bytes | memoryview) -> None:
        """Reads the next piece of the large answer."""
        request = self.in_flight[0]
        throttle = request.read_on()
        if throttle >= 0:
            self._read = None
            self._take(request, frame, throttle)

    def _receive(self, receiving: bool) -> None:
        """Whether the socket is read from."""
        transport = self._transport
        if receiving == self._receiving:
            return
        self._receiving = receiving
        if transport is None or transport.is_closing():
            return
        if receiving:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def _take(self, request: InFlightRequest, frame: bytes | memoryview, throttle: i64) -> None:
        """The answer of the oldest request has been read."""
        self.in_flight.popleft()
        self.answers += 1
        now = self.last_active = self.answered_at = self._loop.time()
        self._metrics.response_received(_SIZE_BYTES + len(frame), now)
        if throttle > 0 and request.version >= APIS[request.api_key].client_throttles_from:
            self._on_throttled(throttle)
        self._tell_answer(request)

    def _tell_answer(self, request: InFlightRequest) -> None:
        """Lets the request handle its answer, for a turn of the loop."""
        try:
            done = request.answered()
        except Exception as bug:
            done = True
            self._on_crash(bug)
        self._answering = None if done else request
        if done and self._last_words is not None and not self.in_flight:
            self.close(self._last_words, graceful=self._closes_gracefully)

    def _tell_loss(self, request: InFlightRequest) -> None:
        """Lets the oldest request fail, for a turn of the loop."""
        error = self.error
        lost = NetworkException(f"the connection to {self.peer} ended before {request.name} was answered: {error}")
        lost.__cause__ = error
        try:
            done = request.failed(lost)
        except Exception as bug:
            done = True
            self._on_crash(bug)
        if done:
            self.in_flight.popleft()

    def eof_received(self) -> bool:
        with self._guard:
            self._end(NetworkException(f"{self.peer} closed the connection"))
        return False

    def _ends(self, error: KafkaError) -> None:
        """Nothing more will be read: what is sent now would not be answered. The first reason counts."""
        self.writable = False
        self._final = self._final or error

    def _end(self, error: KafkaError) -> None:
        """Closes the connection, which is of no use any more, as soon as what the other side has answered is handled:
        it counts."""
        if self.error is None:
            self._ends(error)
            if not self._continuing:
                self._handle_answers()

    def connection_lost(self, exc: Exception | None) -> None:
        with self._guard:
            error = NetworkException(f"the connection to {self.peer} was lost: {exc or 'closed'}")
            error.__cause__ = exc
            if exc is not None and self.error is None and self.in_flight:
                self._continue()
                self._receive_rest()
            self._transport = None
            self._end(error)
            self._metrics.disconnected(self._loop.time())
            if self.error is not None:
                self._settle()

    def _receive_rest(self) -> None:
        """Reads what is left in the kernel's buffer; the next turn handles it. When a write fails because the other
        side has reset the connection, the event loop closes the socket without reading the rest."""
        transport = self._transport
        opened = None if transport is None else transport.get_extra_info("socket")
        if opened is None or (transport is not None and transport.get_extra_info("ssl_object") is not None):
            return
        try:
            with socket.socket(fileno=os.dup(opened.fileno())) as rest:
                rest.setblocking(False)
                while self._final is None and (received := rest.recv_into(self._frames.get_buffer(-1))) > 0:
                    self.buffer_updated(received)
        except OSError:
            pass  # that was all

    def pause_writing(self) -> None:
        with self._guard:
            self.writable = False
            if self.error is None:  # otherwise no answer is due
                self._stuck_at = self._loop.time() + self.request_timeout
                if self._timer is None:
                    self._timer = self._loop.call_at(self._stuck_at, self._check_timeout)

    def resume_writing(self) -> None:
        with self._guard:
            self._stuck_at = math.inf
            self.writable = self.error is None and self._final is None
            self._on_room()


def _abort(transport: asyncio.Transport) -> None:
    _set_option(transport, socket.SO_LINGER, _NO_LINGER)
    transport.abort()


def _set_option(transport: asyncio.Transport, name: int, value: int | bytes) -> None:
    opened = transport.get_extra_info("socket")
    if opened is not None:
        with suppress(OSError, ValueError):  # already closed, as asyncio's sockets and uvloop's say it
            opened.setsockopt(socket.SOL_SOCKET, name, value)
