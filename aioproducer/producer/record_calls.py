"""The hot path: ``send`` and ``enqueue``.

A record that only needs appending goes from here straight into the accumulator, and the result of ``enqueue`` is
already done. All others (with hooks, waits or errors) are left untouched, and the producer handles them from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Generic, overload

from mypy_extensions import mypyc_attr

from aioproducer.errors import KafkaError
from aioproducer.producer.accumulator.record_accumulator import RecordAccumulator
from aioproducer.producer.admission.enqueued import enqueued
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.types import Headers, K, ProducerRecord, V


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordCalls(Generic[K, V]):
    """A mixin of the producer, usable only on the producer's loop, as ``here()`` shows (``loop_affinity.py``)."""

    def __init__(self, here: Callable[[], object], *, hooked: bool) -> None:
        self._here = here
        self._mark: object = self  # nowhere yet
        self._hooked = hooked
        """The user's code must be called for every record."""
        self._accumulator: RecordAccumulator

    def _moved(self, mark: object) -> None:
        """Sets the value that ``here()`` returns on the producer's loop and nowhere else."""
        self._mark = mark

    def _send_otherwise(
        self, topic: Any, value: object, key: object, partition: Any, timestamp_ms: Any, headers: Any
    ) -> Delivery:
        """``send`` for a record that cannot simply be appended."""
        raise NotImplementedError

    def _enqueue_otherwise(
        self, topic: Any, value: object, key: object, partition: Any, timestamp_ms: Any, headers: Any
    ) -> Coroutine[Any, Any, Delivery]:
        """``enqueue`` for a record that cannot simply be appended."""
        raise NotImplementedError

    def _after_a_turn(self, delivery: Delivery) -> Coroutine[Any, Any, Delivery]:
        """Returns the delivery after a turn of the loop."""
        raise NotImplementedError

    @overload
    def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Delivery: ...

    @overload
    def send(self, topic: ProducerRecord[K | None, V | None]) -> Delivery: ...

    def send(
        self,
        topic: object,
        value: object = None,
        *,
        key: object = None,
        partition: object = None,
        timestamp_ms: object = None,
        headers: Any = None,
    ) -> Delivery:
        """Appends a record and returns its delivery; awaiting it is optional.

        This is a plain method. If metadata and memory are available, the record is in the accumulator when it returns.
        Otherwise the record waits, first come, first served, for at most max.block.ms. ``await send(...)``, also in a
        task, waits with it: however many tasks wait, none of their records is refused. An unawaited record counts in
        parked.memory. If there is no room for it, it fails with BufferExhaustedException when its delivery is dropped,
        or after four turns of the event loop, unless a task awaits it by then.

        ``timestamp_ms`` counts from the epoch; None means now. Raises only for misuse (IllegalArgumentException,
        IllegalStateException) and SerializationException; all other errors arrive in the delivery, or in the log if
        nobody awaits it. So does the SerializationException of a serializer that must be awaited: until it finishes,
        the record waits, and all later records behind it.
        """
        delivery = _append(self, topic, value, key, partition, timestamp_ms, headers)
        if delivery is None:
            return self._send_otherwise(topic, value, key, partition, timestamp_ms, headers)
        return delivery

    @overload
    def enqueue(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> Coroutine[Any, Any, Delivery]: ...

    @overload
    def enqueue(self, topic: ProducerRecord[K | None, V | None]) -> Coroutine[Any, Any, Delivery]: ...

    def enqueue(
        self,
        topic: object,
        value: object = None,
        *,
        key: object = None,
        partition: object = None,
        timestamp_ms: object = None,
        headers: Any = None,
    ) -> Coroutine[Any, Any, Delivery]:
        """``send`` with back-pressure: awaited, it waits up to max.block.ms until the record is in the accumulator.

        Raises what kept the record out (BufferExhaustedException, TimeoutException, RecordTooLargeException,
        SerializationException). If it is cancelled while the record waits, the record is withdrawn and will never be in
        the log; a transaction fails with it. Once the record is in the accumulator, cancelling does not affect it.

        The call itself hands the record over, so records keep the order of the calls. If you forget to await it, Python
        warns that it was never awaited, and the record is treated as one of ``send``.
        """
        delivery = _append(self, topic, value, key, partition, timestamp_ms, headers)
        if delivery is None:
            return self._enqueue_otherwise(topic, value, key, partition, timestamp_ms, headers)
        if self._accumulator.must_yield:
            return self._after_a_turn(delivery)
        return enqueued(delivery)


# Not a method: compiled code would call a method through Python, in case a subclass overrides it.
def _append(
    calls: RecordCalls[Any, Any],
    topic: object,
    value: object,
    key: object,
    partition: object,
    timestamp_ms: object,
    headers: Any,
) -> Delivery | None:
    """Appends a plain record and returns its delivery; None, with nothing done, if that is not possible."""
    if type(topic) is not str or calls._hooked or calls._here() != calls._mark:
        return None
    try:
        return calls._accumulator.append(topic, value, key, partition, timestamp_ms, headers)
    except KafkaError:
        return None  # the slow path raises it again, to the right caller
