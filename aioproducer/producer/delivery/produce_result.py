"""The outcome of a batch, which its deliveries point into.

A delivery is (result, index): the outcome is kept once per batch, so completing a batch is one assignment plus its
actual waiters, and a record without a waiter costs nothing to complete. A waiter (an asyncio future) exists only while
a task awaits.

A result refers to its audience weakly, and its listeners are kept there (``audience.py``).

A result may be *forwarded*: a parked record's to the batch that took it in, a split batch's to its parts. Deliveries
follow, and their waiters and callbacks move along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, final

from mypy_extensions import i64, mypyc_attr

from aioproducer.errors import DeliveryError, IllegalStateException
from aioproducer.producer.delivery.audience import Audience
from aioproducer.producer.delivery.listeners import Listeners
from aioproducer.producer.delivery.record_sizes import key_size_at, timestamp_delta_at, value_size_at
from aioproducer.record_metadata import RecordMetadata

PENDING: Final = 0
FORWARDED: Final = 1
SUCCEEDED: Final = 2
FAILED: Final = 3
ABORTED: Final = 4

INTERCEPTED_COST: Final = 160
"""Bytes of memory that a record takes until interceptors see its end, besides its headers …"""

HEADER_COST: Final = 176
"""… and that each header takes, besides its value."""

WHOLE: Final = -1
"""The index of a waiter for the whole result, not for one record of it …"""

SPAN: Final = -2
"""… and of a waiter for ``count`` of its records, which receives their failures."""


class Loop(Protocol):
    """The parts of an event loop used here, so that no rule depends on asyncio."""

    def create_future(self) -> Any: ...

    def time(self) -> float: ...

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Any: ...


class Hooks(Protocol):
    """The parts of the user's code used here (see ``hooks.py``)."""

    depth: int

    def on_acknowledgement(self, result: ProduceResult, records: list[tuple[int, Any]]) -> None: ...

    def on_send_error(self, record: Any, error: BaseException) -> None: ...


class Lot(Protocol):
    """The part of the parking lot used here: it counts the tasks that await a parked record."""

    def awaited(self, result: ProduceResult) -> None: ...

    def left(self, result: ProduceResult) -> None: ...

    def released(self, result: ProduceResult) -> None: ...

    def dropped(self, result: ProduceResult) -> None: ...


_NOWHERE: Final[list[tuple[i64, Any, i64]]] = []
"""The forwarding of a result that was not forwarded; never changed."""


# The garbage collector does not look into it (docs/internals/compiled.md).
@final
@mypyc_attr(acyclic=True)
class ProduceResult:
    """The outcome of one batch (Kafka's ``ProduceRequestResult`` and ``ProducerBatch.FinalState``).

    PENDING may become FORWARDED, SUCCEEDED, FAILED or ABORTED, and these are final: a batch completes once.
    """

    def __init__(self, audience: Audience, topic: str, partition: i64) -> None:
        self._audience: Callable[[], Audience | None] = audience.weak
        self._loop: Callable[[], Loop | None] = audience.weak_loop
        self.topic = topic
        self.partition = partition
        self.state: i64 = PENDING
        self.base_offset: i64 = -1
        self.log_append_time: i64 = -1
        self.base_timestamp: i64 = -1
        self.sizes: bytes = b""
        self.error: DeliveryError | None = None
        self.error_seen = False
        """A caller has received the error."""
        self._listened = False
        """The audience has listeners of it."""
        self.watched = False
        """The result calls ``on_awaited`` of its audience once, when a task next awaits a record."""
        self.parked = False
        """Its record waits in the audience's parking lot."""
        # Headers of the records whose end interceptors must see, in record order. None instead of an empty list: each
        # parked record has its own result, and pays for each list.
        self.intercepted: list[tuple[i64, Any]] | None = None
        self.kept: i64 = 0
        """Bytes of memory that these take."""
        # (first index here, where it went, index there), ascending
        self.targets: list[tuple[i64, ProduceResult, i64]] = _NOWHERE

    @property
    def loop(self) -> Loop:
        loop = self._loop()
        if loop is None:
            raise IllegalStateException("the event loop of the delivery is gone")
        return loop

    def audience(self) -> Audience | None:
        """None when the producer is gone."""
        return self._audience()

    def present_audience(self) -> Audience:
        audience = self._audience()
        if audience is None:
            raise IllegalStateException("the producer is gone, and its loop ended before the record was delivered")
        return audience

    @property
    def lot(self) -> Lot | None:
        """The parking lot in which this result's record waits; None if it does not wait."""
        if not self.parked:
            return None
        audience = self._audience()
        return None if audience is None else audience.lot

    def done(self) -> bool:
        return self.state >= SUCCEEDED

    def unobserved(self, count: i64) -> i64:
        """Of how many of its records, ``count`` in all, a failure would reach no caller; ``flush``, interceptors and
        cancelled tasks are none."""
        listeners = self._listeners()
        if listeners is None:
            return count
        observed: set[int] = set()
        in_spans: i64 = 0
        for place, future in enumerate(listeners.waiters):
            index = listeners.awaited[place]
            if future.done() or index == WHOLE:
                continue
            if index == SPAN:
                in_spans += future.count
            else:
                observed.add(index)
        callbacks = listeners.callbacks
        if callbacks is not None:
            for index, _ in callbacks:
                observed.add(index)
        return count - in_spans - len(observed)

    def has_callbacks(self) -> bool:
        listeners = self._listeners()
        return listeners is not None and bool(listeners.callbacks)

    def _listeners(self) -> Listeners | None:
        if not self._listened:
            return None
        audience = self._audience()
        return None if audience is None else audience.listeners.get(self)

    def _take_listeners(self) -> Listeners | None:
        """Removes the listeners from the audience; the caller notifies them."""
        self.watched = False
        if not self._listened:
            return None
        self._listened = False
        audience = self._audience()
        return None if audience is None else audience.listeners.pop(self, None)

    def _listeners_in(self, audience: Audience) -> Listeners:
        """Those of a pending result, to add to them."""
        if self._listened:
            known: Listeners = audience.listeners[self]
            return known
        self._listened = True
        listeners = Listeners()
        audience.listeners[self] = listeners
        return listeners

    def succeed(self, base_offset: i64, log_append_time: i64, base_timestamp: i64, sizes: bytes) -> bool:
        """Completes every delivery of the batch; False if it was complete already."""
        if self.state != PENDING:
            return False
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.base_timestamp = base_timestamp
        self.sizes = sizes
        self.state = SUCCEEDED
        self._notify()
        return True

    def fail(self, error: DeliveryError, aborted: bool = False) -> bool:
        """Ends every delivery of the batch with ``error``; False if it was complete already."""
        if self.state != PENDING:
            return False
        self.error = error
        self.state = ABORTED if aborted else FAILED
        self._notify()
        return True

    def forward(self, targets: list[tuple[i64, ProduceResult, i64]]) -> None:
        """Moves the records from each first index on to that target, from its index on."""
        if self.state != PENDING:
            raise IllegalStateException("only a result that is still pending can be forwarded")
        self.targets = targets
        self.state = FORWARDED
        intercepted = self.intercepted
        self.intercepted = None
        listeners = self._take_listeners()
        if intercepted is not None:
            for index, headers in intercepted:
                self.intercept(index, headers)
        if listeners is None:
            return
        for place, future in enumerate(listeners.waiters):
            self.add_waiter(listeners.awaited[place], future)
        callbacks = listeners.callbacks
        if callbacks is not None:
            for index, callback in callbacks:
                self.add_callback(index, callback)

    def target(self, index: i64) -> tuple[ProduceResult, i64]:
        """Where record ``index`` of a forwarded result went."""
        found = self.targets[0]
        for candidate in self.targets:
            if candidate[0] > index:
                break
            found = candidate
        return (found[1], found[2] + index - found[0])

    def add_waiter(self, index: i64, future: Any) -> None:
        """``future`` gets the record's outcome; a future for the WHOLE or a SPAN is also notified of a forwarding."""
        if self.state == PENDING:
            self._add_waiter(self.present_audience(), index, future)
        elif self.state == FORWARDED and index >= 0:
            place = self.target(index)
            place[0].add_waiter(place[1], future)
        else:
            self._wake(index, future)

    def _add_waiter(self, audience: Audience, index: i64, future: Any) -> None:
        listeners = self._listeners_in(audience)
        listeners.waiters.append(future)
        listeners.awaited.append(index)
        if self.watched:
            self.watched = False
            audience.on_awaited(self)

    def waiter(self, index: i64) -> Any:
        """A new future that waits for a record of this result, which is pending."""
        audience = self.present_audience()
        future = audience.loop.create_future()
        self._add_waiter(audience, index, future)
        return future

    def notice(self) -> None:
        """Reports that a caller awaits a record, or will after earlier ones."""
        if self.watched:
            self.watched = False
            audience = self._audience()
            if audience is not None:
                audience.on_awaited(self)

    def number_waiting(self) -> i64:
        """The number of futures that wait for a record's outcome."""
        listeners = self._listeners()
        return 0 if listeners is None else len(listeners.waiters)

    def add_callback(self, index: i64, callback: Any) -> None:
        """``callback()`` is called when the record is done: in record order, or soon if it is already done."""
        if self.state == PENDING:
            listeners = self._listeners_in(self.present_audience())
            callbacks = listeners.callbacks
            if callbacks is None:
                callbacks = listeners.callbacks = []
            callbacks.append((index, callback))
        elif self.state == FORWARDED:
            place = self.target(index)
            place[0].add_callback(place[1], callback)
        else:
            self.loop.call_soon(callback)

    def intercept(self, index: i64, headers: tuple[tuple[str, bytes | None], ...]) -> None:
        """Registers a record for interceptors: they see outcomes in record order, before all other waiters."""
        if self.state == PENDING:
            intercepted = self.intercepted
            if intercepted is None:
                intercepted = self.intercepted = []
            intercepted.append((index, headers))
            self.kept += INTERCEPTED_COST
            for header in headers:
                value: bytes | None = header[1]
                self.kept += HEADER_COST + (0 if value is None else len(value))
        elif self.state == FORWARDED:
            place = self.target(index)
            place[0].intercept(place[1], headers)
        else:
            hooks = self.hooks()
            if hooks is not None:
                hooks.on_acknowledgement(self, [(index, headers)])

    def hooks(self) -> Hooks | None:
        audience = self._audience()
        return None if audience is None else audience.hooks

    def metadata(self, index: i64) -> RecordMetadata:
        """The metadata of record ``index`` of a batch that succeeded."""
        sizes = self.sizes
        log_append_time = self.log_append_time
        if log_append_time >= 0:
            timestamp = log_append_time
        else:
            timestamp = self.base_timestamp + timestamp_delta_at(sizes, index)
        return RecordMetadata(
            self.topic,
            self.partition,
            self.base_offset + index if self.base_offset >= 0 else -1,
            timestamp,
            log_append_time >= 0,
            key_size_at(sizes, index),
            value_size_at(sizes, index),
        )

    def raised(self, index: i64) -> DeliveryError:
        """The error of record ``index``, a new object for each caller: a shared one would collect all their
        tracebacks."""
        error = self.error
        if error is None:
            raise IllegalStateException("the delivery did not fail")
        self.error_seen = True
        return error.for_record(index)

    def _notify(self) -> None:
        intercepted = self.intercepted
        hooks = None if intercepted is None else self.hooks()
        if intercepted is not None and hooks is not None:
            self.intercepted = None
            try:
                hooks.on_acknowledgement(self, intercepted)
            finally:
                self._notify_users()
        else:
            self._notify_users()

    def _notify_users(self) -> None:
        listeners = self._take_listeners()
        if listeners is None:
            return
        for place, future in enumerate(listeners.waiters):
            self._wake(listeners.awaited[place], future)
        callbacks = listeners.callbacks
        if callbacks is not None:
            callbacks.sort(key=_by_index)
            for _, callback in callbacks:
                callback()

    def _wake(self, index: i64, future: Any) -> None:
        if self.state == SUCCEEDED and index >= 0:
            try:
                future.set_result(self.metadata(index))
            except Exception:
                if not future.done():  # rarely done already, because its task was cancelled: so not checked first
                    raise
        elif future.done():
            pass
        elif index < 0:
            future.set_result(None)
        else:
            future.set_exception(self.raised(index))

    def gave_up(self, future: Any) -> None:
        """Called when the future of a task that awaits a parked record is done. If cancelled, the task no longer
        waits."""
        lot = self.lot
        if lot is not None and future.cancelled():
            lot.left(self)


def _by_index(entry: tuple[i64, Any]) -> i64:
    return entry[0]
