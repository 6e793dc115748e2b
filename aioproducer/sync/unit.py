"""A unit of work, for threads."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, overload

from aioproducer.errors import Outcome
from aioproducer.producer.units.unit import Unit as LoopUnit
from aioproducer.record_metadata import RecordMetadata
from aioproducer.types import ConsumerGroupMetadata, Headers, K, OffsetAndMetadata, ProducerRecord, TopicPartition, V

if TYPE_CHECKING:
    from aioproducer.sync.producer import KafkaProducer


class Unit(Generic[K, V]):
    """The records and offsets of one handler, committed as a whole or not at all; :meth:`KafkaProducer.unit` makes it.

    ::

        with producer.unit() as unit:
            unit.send("orders", b"order", key=b"42")
            unit.send("audit", b"entry", key=b"42")

    Calls and promises are those of :class:`aioproducer.Unit`. Each call waits for the producer's thread. If the wait at
    the end of the block is interrupted, by Ctrl-C for instance, ``outcome`` and ``wait()`` say how the unit ended.
    """

    __slots__ = ("_producer", "_unit")

    def __init__(self, producer: KafkaProducer[K, V], unit: LoopUnit[K, V]) -> None:
        self._producer = producer
        self._unit = unit

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
    ) -> None: ...

    @overload
    def send(self, topic: ProducerRecord[K | None, V | None]) -> None: ...

    def send(self, topic: Any, value: Any = None, **fields: Any) -> None:
        """Adds a record to the unit: see :meth:`aioproducer.Unit.send`."""
        self._producer._call(self._unit.send, topic, value, **fields)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: ConsumerGroupMetadata | str
    ) -> None:
        """Adds a group's offsets (of the next records to read) to the unit."""
        self._producer._call(self._unit.send_offsets, offsets, group)

    def __enter__(self) -> Self:
        self._producer._call(self._unit.__aenter__)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._producer._call(self._unit.__aexit__, exc_type, exc, traceback)

    def done(self) -> bool:
        """Whether the unit is committed, or has failed, or was never to be sent."""
        return self._unit.done()

    @property
    def committed(self) -> bool:
        """Whether the unit is known to be committed."""
        return self._unit.committed

    @property
    def outcome(self) -> Outcome | None:
        """``None`` while it is not known, and when the unit is committed; else NOT_SENT or UNKNOWN."""
        return self._unit.outcome

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the unit is committed, and raises the error that it failed with; the builtin TimeoutError after
        ``timeout`` seconds."""
        self._producer._call(self._unit.wait, wait=timeout)

    def result(self) -> list[RecordMetadata]:
        """The metadata of the records; raises the error that the unit failed with."""

        async def result() -> list[RecordMetadata]:
            return self._unit.result()

        return self._producer._call(result)

    def __repr__(self) -> str:
        return repr(self._unit)
