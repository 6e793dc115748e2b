"""Deliveries and the results they point into. Compiled when there is a compiler (see ``setup.py``).

A delivery is (result, index): the outcome is kept once per batch, so completing a batch is one assignment plus its
actual waiters, and a record that nobody asks about costs nothing to complete. A waiter (an asyncio future) exists only
while somebody awaits.

A result may be *forwarded*: a parked record's to the batch that took it in, a split batch's to its parts. Deliveries
follow, and their waiters and callbacks move along.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol, final

from mypy_extensions import i64, mypyc_attr

from aioproducer.errors import DeliveryError, IllegalStateException, Outcome
from aioproducer.producer.record_sizes import key_size_at, timestamp_delta_at, value_size_at
from aioproducer.record_metadata import RecordMetadata

log = logging.getLogger(__name__)

PENDING: Final = 0
FORWARDED: Final = 1
SUCCEEDED: Final = 2
FAILED: Final = 3
ABORTED: Final = 4

INTERCEPTED_COST: Final = 144
"""Bytes of memory that a record takes until interceptors are told of its end, besides its headers …"""

HEADER_COST: Final = 160
"""… and that each header takes, besides its value."""

WHOLE: Final = -1
"""The index of a waiter that waits for the whole result, not for one record of it …"""

SPAN: Final = -2
"""… and of a waiter for some of its records, which counts as somebody who is told of a failure."""


class Loop(Protocol):
    """The parts of an event loop that are needed here, so that no rule depends on asyncio."""

    def create_future(self) -> Any: ...

    def time(self) -> float: ...

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Any: ...


class Hooks(Protocol):
    """The parts of the user's code that are needed here (see ``hooks.py``)."""

    depth: int

    def on_acknowledgement(self, result: ProduceResult, records: list[tuple[int, Any]]) -> None: ...


@final
class ProduceResult:
    """The outcome of one batch (Kafka's ``ProduceRequestResult`` and ``ProducerBatch.FinalState``).

    PENDING may become FORWARDED, SUCCEEDED, FAILED or ABORTED, and these are final: a batch completes once.
    """

    def __init__(self, loop: Loop, topic: str, partition: i64, hooks: Hooks | None = None) -> None:
        self.loop = loop
        self.hooks = hooks
        self.topic = topic
        self.partition = partition
        self.state: i64 = PENDING
        self.base_offset: i64 = -1
        self.log_append_time: i64 = -1
        self.base_timestamp: i64 = -1
        self.sizes: bytes = b""
        self.error: DeliveryError | None = None
        self.told = False
        """Somebody has been given the error."""
        # Two lists in step instead of one of pairs: with many tasks awaiting, pairs would be a tenth of the cost here.
        self.waiters: list[Any] = []
        self._awaited: list[i64] = []
        self.callbacks: list[tuple[i64, Any]] = []
        # Headers of the records whose end interceptors must be told, in record order.
        self.intercepted: list[tuple[i64, Any]] = []
        self.kept: i64 = 0
        """Bytes of memory that these take."""
        # (first index here, where it went, index there), ascending
        self.targets: list[tuple[i64, ProduceResult, i64]] = []
        # Called when the last task that awaited a record gives up while the record is still parked.
        self.on_abandoned: Callable[[], object] | None = None

    def done(self) -> bool:
        return self.state >= SUCCEEDED

    def observed(self) -> bool:
        """Whether a failure would be told to somebody; ``flush``, interceptors and cancelled tasks do not count."""
        if self.callbacks:
            return True
        return any(self._awaited[place] != WHOLE and not future.done() for place, future in enumerate(self.waiters))

    def succeed(self, base_offset: i64, log_append_time: i64, base_timestamp: i64, sizes: bytes) -> bool:
        """Completes every delivery of the batch; False if it was complete already."""
        if self.state != PENDING:
            return False
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.base_timestamp = base_timestamp
        self.sizes = sizes
        self.state = SUCCEEDED
        self._tell()
        return True

    def fail(self, error: DeliveryError, aborted: bool = False) -> bool:
        """Ends every delivery of the batch with ``error``; False if it was complete already."""
        if self.state != PENDING:
            return False
        self.error = error
        self.state = ABORTED if aborted else FAILED
        self._tell()
        return True

    def forward(self, targets: list[tuple[i64, ProduceResult, i64]]) -> None:
        """From now on the records from each first index live in that target, from that index on."""
        if self.state != PENDING:
            raise IllegalStateException("only a result that is still pending can be forwarded")
        self.targets = targets
        self.state = FORWARDED
        waiters = self.waiters
        awaited = self._awaited
        callbacks = self.callbacks
        intercepted = self.intercepted
        self.waiters = []
        self._awaited = []
        self.callbacks = []
        self.intercepted = []
        for index, headers in intercepted:
            self.intercept(index, headers)
        for place, future in enumerate(waiters):
            self.add_waiter(awaited[place], future)
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
        """``future`` gets the record's outcome; a future for the WHOLE or a SPAN is told of a forwarding, too."""
        if self.state == PENDING:
            self.waiters.append(future)
            self._awaited.append(index)
        elif self.state == FORWARDED and index >= 0:
            place = self.target(index)
            place[0].add_waiter(place[1], future)
        else:
            self._wake(index, future)

    def add_callback(self, index: i64, callback: Any) -> None:
        """``callback()`` is called when the record is done: in record order, or soon if it is already done."""
        if self.state == PENDING:
            self.callbacks.append((index, callback))
        elif self.state == FORWARDED:
            place = self.target(index)
            place[0].add_callback(place[1], callback)
        else:
            self.loop.call_soon(callback)

    def intercept(self, index: i64, headers: tuple[tuple[str, bytes | None], ...]) -> None:
        """Interceptors will be told the record's outcome: in record order, and before anybody else."""
        if self.state == PENDING:
            self.intercepted.append((index, headers))
            self.kept += INTERCEPTED_COST
            for header in headers:
                value: bytes | None = header[1]
                self.kept += HEADER_COST + (0 if value is None else len(value))
        elif self.state == FORWARDED:
            place = self.target(index)
            place[0].intercept(place[1], headers)
        elif self.hooks is not None:
            self.hooks.on_acknowledgement(self, [(index, headers)])

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
        """The error of record ``index``, a new one for each caller: a shared one would collect all their tracebacks."""
        error = self.error
        if error is None:
            raise IllegalStateException("the delivery did not fail")
        self.told = True
        return error.told_of(index)

    def _tell(self) -> None:
        self.on_abandoned = None
        intercepted = self.intercepted
        hooks = self.hooks
        if intercepted and hooks is not None:
            self.intercepted = []
            try:
                hooks.on_acknowledgement(self, intercepted)
            finally:
                self._tell_users()
        else:
            self._tell_users()

    def _tell_users(self) -> None:
        waiters = self.waiters
        awaited = self._awaited
        callbacks = self.callbacks
        if waiters:
            self.waiters = []
            self._awaited = []
            for place, future in enumerate(waiters):
                self._wake(awaited[place], future)
        if callbacks:
            self.callbacks = []
            callbacks.sort(key=_by_index)
            for _, callback in callbacks:
                callback()

    def _wake(self, index: i64, future: Any) -> None:
        if self.state == SUCCEEDED and index >= 0:
            try:
                future.set_result(self.metadata(index))
            except Exception:
                if not future.done():  # done, because its task was cancelled, is rare: so not checked first
                    raise
        elif future.done():
            pass
        elif index < 0:
            future.set_result(None)
        else:
            future.set_exception(self.raised(index))

    def gave_up(self, future: Any) -> None:
        """A future for a parked record is done. If it was cancelled, and nobody else waits, say so."""
        hook = self.on_abandoned
        if hook is None or self.state != PENDING or not future.cancelled():
            return
        if not self.callbacks and all(waiter.done() for waiter in self.waiters):
            hook()


def _by_index(entry: tuple[i64, Any]) -> i64:
    return entry[0]


# Handles are many and short-lived, so the garbage collector does not look at them. They are in no lasting cycle: the
# references back to them, from a result's callbacks and waiters, are cut when the result is complete.
@final
@mypyc_attr(acyclic=True, free_list_len=1)
class Delivery:
    """One record's delivery: await it for its :class:`RecordMetadata`, or for the error that ended it.

    Any number of tasks may await it; cancelling one of them affects neither the record nor the others. ``done()``,
    ``result()``, ``exception()`` and ``add_done_callback()`` work as on a future.
    """

    def __init__(self, result: ProduceResult, index: i64) -> None:
        self._result = result
        self._index = index

    def _settled(self) -> ProduceResult:
        """The result the record is in now, after any forwarding."""
        result = self._result
        while result.state == FORWARDED:
            place = result.target(self._index)
            result = place[0]
            self._result = result
            self._index = place[1]
        return result

    def done(self) -> bool:
        """Whether the record was delivered or has failed."""
        return self._settled().state >= SUCCEEDED

    def result(self) -> RecordMetadata:
        """The metadata; raises the delivery's error, or IllegalStateException while it is not done."""
        result = self._settled()
        if result.state == SUCCEEDED:
            return result.metadata(self._index)
        if result.state < SUCCEEDED:
            raise IllegalStateException("the delivery is not done yet: await it")
        raise result.raised(self._index)

    def exception(self) -> DeliveryError | None:
        """The error that ended it, ``None`` if it was delivered; IllegalStateException while it is not done."""
        result = self._settled()
        if result.state == SUCCEEDED:
            return None
        if result.state < SUCCEEDED:
            raise IllegalStateException("the delivery is not done yet: await it")
        return result.raised(self._index)

    @property
    def outcome(self) -> Outcome | None:
        """``None`` while not done and when delivered; else NOT_SENT (proven absent from the log) or UNKNOWN."""
        error = self._settled().error
        return None if error is None else error.outcome

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Calls ``callback(delivery)`` when done, in record order within a batch; what it raises is logged."""
        result = self._settled()
        result.add_callback(self._index, _Callback(self, callback, result.loop, result.hooks))

    def place(self) -> tuple[ProduceResult, i64]:
        """Where its end is to be found: the result and the index there. Changes nothing, so that any thread may ask."""
        result = self._result
        index = self._index
        while result.state == FORWARDED:
            place = result.target(index)
            result = place[0]
            index = place[1]
        return result, index

    def settled(self) -> Any:
        """A future that is done when the delivery is done or its batch was split; it never fails."""
        result = self._settled()
        future = result.loop.create_future()
        if result.state >= SUCCEEDED:
            future.set_result(None)
        else:
            result.add_waiter(WHOLE, future)
        return future

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        result = self._settled()
        if result.state >= SUCCEEDED:
            return _ended(self).__await__()
        future = result.loop.create_future()
        result.add_waiter(self._index, future)
        if result.on_abandoned is not None:
            future.add_done_callback(result.gave_up)
        waiting: Generator[Any, None, RecordMetadata] = future.__await__()
        return waiting

    def __repr__(self) -> str:
        result = self._settled()
        state = ("pending", "forwarded", "delivered", "failed", "aborted")[result.state]
        return f"<Delivery {result.topic}-{result.partition} {state}>"


async def _ended(delivery: Delivery) -> RecordMetadata:
    return delivery.result()


@final
class _Callback:
    """A user's callback and its delivery; calling it never raises into the completion of a batch."""

    def __init__(
        self, delivery: Delivery, callback: Callable[[Delivery], object], loop: Loop, hooks: Hooks | None
    ) -> None:
        self._delivery = delivery
        self._callback = callback
        self._loop = loop
        self._hooks = hooks

    def __call__(self) -> None:
        hooks = self._hooks
        if hooks is not None:
            hooks.depth += 1
        try:
            self._callback(self._delivery)
        except Exception:
            log.exception("a delivery callback raised; the delivery itself is not affected")
        except BaseException as stop:
            # KeyboardInterrupt and SystemExit stop the loop, but not in the middle of completing a batch.
            self._loop.call_soon(_raise, stop)
        finally:
            if hooks is not None:
                hooks.depth -= 1


def _raise(error: BaseException) -> None:
    raise error
