"""One record's delivery: the handle that ``send`` returns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, NoReturn, final

from mypy_extensions import i64, mypyc_attr

from aioproducer.errors import DeliveryError, IllegalStateException, Outcome
from aioproducer.errors.printable import printable
from aioproducer.producer.delivery.produce_result import FORWARDED, SUCCEEDED, WHOLE, Hooks, Loop, ProduceResult
from aioproducer.record_metadata import RecordMetadata

log = logging.getLogger(__name__)


# Handles are many and short-lived, so the garbage collector does not look at them. They refer to nothing but results,
# which refer to nothing that leads back to them.
@mypyc_attr(acyclic=True, free_list_len=1)
class Delivery:
    """One record's delivery: await it for its :class:`RecordMetadata`, or for the error that ended it.

    Any number of tasks may await it; cancelling one of them affects neither the record nor the others. There is one
    exception: a record that still waits for serializers, metadata or memory is withdrawn when the last task awaiting it
    is cancelled, and its transaction fails. While no task awaits a waiting record, it counts in parked.memory, and
    fails if there is no room for it; callbacks, ``flush`` and ``close`` do not count as awaiting it.

    ``done()``, ``result()``, ``exception()`` and ``add_done_callback()`` work as on a future.

    It is a coroutine, too, so that ``asyncio.create_task`` and task groups take it. ``asyncio.wait`` takes no
    coroutines: give it ``asyncio.ensure_future(delivery)``.
    """

    def __init__(self, result: ProduceResult, index: i64) -> None:
        self._result = result
        self._index = index

    def _present_result(self) -> ProduceResult:
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
        return self._present_result().state >= SUCCEEDED

    def result(self) -> RecordMetadata:
        """The metadata; raises the delivery's error, or IllegalStateException while it is not done."""
        result = self._present_result()
        if result.state == SUCCEEDED:
            return result.metadata(self._index)
        if result.state < SUCCEEDED:
            raise IllegalStateException("the delivery is not done yet: await it")
        raise result.raised(self._index)

    def exception(self) -> DeliveryError | None:
        """The error that ended it, ``None`` if it was delivered; IllegalStateException while it is not done."""
        result = self._present_result()
        if result.state == SUCCEEDED:
            return None
        if result.state < SUCCEEDED:
            raise IllegalStateException("the delivery is not done yet: await it")
        return result.raised(self._index)

    @property
    def outcome(self) -> Outcome | None:
        """``None`` while not done and when delivered; else NOT_SENT (proven absent from the log) or UNKNOWN."""
        error = self._present_result().error
        return None if error is None else error.outcome

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Calls ``callback(delivery)`` when done, in record order within a batch; what it raises is logged."""
        result = self._present_result()
        result.add_callback(self._index, _Callback(self, callback, result.loop, result.hooks()))

    def place(self) -> tuple[ProduceResult, i64]:
        """The result that holds its end, and the index there. Changes nothing, so any thread may call it."""
        result = self._result
        index = self._index
        while result.state == FORWARDED:
            place = result.target(index)
            result = place[0]
            index = place[1]
        return result, index

    def settled(self) -> Any:
        """A future that is done when the delivery is done or its batch was split; it never fails."""
        result = self._present_result()
        if result.state < SUCCEEDED:
            return result.waiter(WHOLE)
        future = result.loop.create_future()
        future.set_result(None)
        return future

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        result = self._present_result()
        if result.state >= SUCCEEDED:
            return _ended(self).__await__()
        return self._waiting(result)

    def _waiting(self, result: ProduceResult) -> Generator[Any, None, RecordMetadata]:
        """Waits for the record's end in its present result, which is pending."""
        lot = result.lot
        if lot is not None:
            lot.awaited(result)
        future = result.waiter(self._index)
        if lot is not None:
            future.add_done_callback(result.gave_up)
        waiting: Generator[Any, None, RecordMetadata] = future.__await__()
        return waiting

    # A coroutine's methods, which a task calls. They keep no state: whatever a task waits for is done when the task
    # wakes, so any number of tasks may run the same delivery.

    def send(self, value: None) -> Any:
        """For tasks: raises StopIteration with the metadata, or the error, or returns the future to wait for."""
        result = self._present_result()
        if result.state < SUCCEEDED:
            return next(self._waiting(result))
        raise StopIteration(self.result())

    def throw(self, error: Any, value: BaseException | None = None, traceback: TracebackType | None = None) -> Any:
        """For tasks: raises the error, which ends the wait and not the delivery."""
        if value is None:
            value = error() if isinstance(error, type) else error
        raise value if traceback is None else value.with_traceback(traceback)

    def close(self) -> None:
        """For tasks: ends nothing, because a delivery ends with its record."""

    def __reduce__(self) -> NoReturn:
        """Raises TypeError: a copy would stand for no record."""
        raise TypeError("a Delivery stands for one record, and can be neither copied nor pickled")

    def __repr__(self) -> str:
        result = self._present_result()
        state = ("pending", "forwarded", "delivered", "failed", "aborted")[result.state]
        return f"<Delivery {printable(result.topic)}-{result.partition} {state}>"


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
