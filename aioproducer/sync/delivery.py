"""A record's delivery, for threads."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import final

from aioproducer.errors import IllegalStateException, KafkaError, Outcome
from aioproducer.producer.delivery.delivery import Delivery as LoopDelivery
from aioproducer.producer.delivery.produce_result import SUCCEEDED, ProduceResult
from aioproducer.record_metadata import RecordMetadata
from aioproducer.sync.handover import Handover, Waiter

log = logging.getLogger(__name__)


@final
class Delivery:
    """One record's delivery, with the methods of a ``concurrent.futures.Future``; any thread may ask.

    It cannot be cancelled, and costs nothing to complete, because the outcome is kept once per batch. So it is not a
    Future, and ``concurrent.futures.wait`` does not take it; ``producer.flush()`` waits for many.
    """

    __slots__ = ("_handover", "_placed", "_refused")

    def __init__(self, handover: Handover) -> None:
        self._handover = handover
        self._placed: LoopDelivery | None = None
        self._refused: Exception | None = None

    def placed(self, delivery: LoopDelivery) -> None:
        """The producer has accepted the record; called by the loop."""
        self._placed = delivery

    def refused(self, error: Exception) -> None:
        """The producer has refused the record; called by the loop."""
        self._refused = error

    def done(self) -> bool:
        """Whether the record was delivered or has failed."""
        place = self._place()
        return self._refused is not None if place is None else place[0].done()

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """The metadata; raises the delivery's error.

        ``timeout`` is in seconds; None waits until the delivery ends, at most delivery.timeout.ms. When the time is
        over, the call raises the builtin TimeoutError, and the record stays under way. In a delivery callback, which
        must not wait, and in a forked process, it raises IllegalStateException unless the delivery is done.
        """
        self._wait(timeout)
        place = self._place()
        if place is None:
            raise self._refusal()
        result, index = place
        if result.state == SUCCEEDED:
            return result.metadata(index)
        raise result.raised(index)

    def exception(self, timeout: float | None = None) -> Exception | None:
        """The error that ended it, None if it was delivered; ``timeout`` as for :meth:`result`."""
        self._wait(timeout)
        place = self._place()
        if place is None:
            return self._refusal()
        result, index = place
        return None if result.state == SUCCEEDED else result.raised(index)

    @property
    def outcome(self) -> Outcome | None:
        """``None`` while not done and when delivered; else NOT_SENT (proven absent from the log) or UNKNOWN."""
        place = self._place()
        if place is None:
            return None if self._refused is None else Outcome.NOT_SENT
        error = place[0].error
        return None if error is None else error.outcome

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Calls ``callback(delivery)`` when done: at once if it already is, else in the producer's thread.

        The callback must not hold that thread up. There, callbacks run in record order within a batch; what they raise
        is logged.
        """
        if self.done() or not self._handover.call_soon(self._call_when_done, callback):
            self._check_done()
            self._call(callback)

    def _place(self) -> tuple[ProduceResult, int] | None:
        placed = self._placed
        return None if placed is None else placed.place()

    def _refusal(self) -> Exception:
        error = self._refused
        assert error is not None, "a delivery that is done was placed or refused"
        return error.fresh() if isinstance(error, KafkaError) else error

    def _wait(self, timeout: float | None) -> None:
        if self.done():
            return
        handover = self._handover
        if handover.on_loop():
            raise IllegalStateException("the delivery is not done yet, and would never be if this thread waited for it")
        waiter = Waiter()
        handover.waiters.add(waiter)
        try:
            if not handover.call_soon(self._notify, waiter):
                handover.refuse_the_rest()
            elif not waiter.ended.wait(timeout):
                raise TimeoutError(f"the record was not delivered within {timeout} s; it stays under way")
        finally:
            waiter.left = True
            handover.waiters.discard(waiter)
        self._check_done()

    def _check_done(self) -> None:
        if not self.done():
            raise IllegalStateException(
                "the producer has ended, or this process was forked, before the record was delivered"
            )

    def _notify(self, waiter: Waiter) -> None:
        self._handover.take()
        place = self._place()
        if place is None:
            waiter.ended.set()
        else:
            place[0].add_waiter(place[1], waiter)

    def _call_when_done(self, callback: Callable[[Delivery], object]) -> None:
        self._handover.take()
        place = self._place()
        if place is None:
            self._call(callback)
        else:
            # A separate handle: the one that threads read must not change.
            LoopDelivery(*place).add_done_callback(lambda _: callback(self))

    def _call(self, callback: Callable[[Delivery], object]) -> None:
        try:
            callback(self)
        except Exception:
            log.exception("a delivery callback raised; the delivery itself is not affected")

    def __repr__(self) -> str:
        if self._placed is not None:
            return repr(LoopDelivery(*self._placed.place()))
        return "<Delivery handed over>" if self._refused is None else f"<Delivery refused: {self._refused}>"
