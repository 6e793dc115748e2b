"""Dead letters: records that cannot be delivered, or processed, go to a topic, with the reason in headers.

::

    letters = DeadLetters(producer, "orders.dead")
    metadata = await letters.send("orders", order, key=customer)  # None: it went to orders.dead

``docs/units.md`` has the recipes, ``docs/schemas.md`` the headers. Kafka Connect (``errors.deadletterqueue.*``) and
Kafka Streams (KIP-1034) do the same on the side of the consumer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Generic

from aioproducer.errors import (
    ApiException,
    DeliveryError,
    IllegalArgumentException,
    IllegalStateException,
    InvalidTimestampException,
    KafkaError,
    Outcome,
    PartitionerException,
    RecordTooLargeException,
    SerializationException,
    UnitTooLargeException,
)
from aioproducer.producer.admission.admission import record_of
from aioproducer.producer.hooks.serialization import Raw
from aioproducer.producer.producer import KafkaProducer
from aioproducer.producer.units.unit import Unit
from aioproducer.record_metadata import RecordMetadata
from aioproducer.types import ConsumerGroupMetadata, K, OffsetAndMetadata, ProducerRecord, TopicPartition, V

log = logging.getLogger(__name__)

PREFIX: Final = "aioproducer.dead."
"""What the names of all headers of a dead letter begin with."""
MOST_WORDS: Final = 1000
"""The most characters of an error's message in a header."""

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]
Group = ConsumerGroupMetadata | str


class DeadLetters(Generic[K, V]):
    """Sends what cannot be delivered to ``topic``, through the same producer: in a unit if that is transactional.

    A dead letter has the record's key, value and headers, and headers of its own that tell where the record was to go,
    why and when it died, how often, and where it came from. Nothing happens silently: each letter is logged, and if it
    cannot be delivered either, the caller gets the record's error, with a note. Nothing goes in circles: a record for
    ``topic`` itself has no dead letter, and one that has died ``most_attempts`` times raises its error. The letter of a
    record that cannot be serialized, or is too large for ``topic``, has neither key nor value, and says so.
    """

    def __init__(self, producer: KafkaProducer[K, V], topic: str, *, most_attempts: int = 5) -> None:
        if not topic:
            raise IllegalArgumentException("the topic of dead letters is empty")
        if most_attempts < 1:
            raise IllegalArgumentException(f"most_attempts is {most_attempts}; it must be 1 or more")
        self.topic = topic
        self.producer = producer
        self._most_attempts = most_attempts
        self._in_units = producer.config.transactional_id is not None

    async def send(self, topic: Any, value: Any = None, **fields: Any) -> RecordMetadata | None:
        """Sends a record, with the arguments of ``KafkaProducer.send``; returns its metadata when it is delivered, or
        None when its dead letter is.

        Raises what is not the record's fault: misuse, and errors that end the producer.
        """
        record = _record(topic, value, fields)
        try:
            if not self._in_units:
                return await self.producer.send(record)
            async with self.producer.unit() as unit:
                await unit.send(record)
            return unit.result()[0]
        except KafkaError as error:
            if not is_of_the_record(error) or (self._in_units and _may_be_committed(error)):
                raise
            await self._put_all([self._letter(record, error)], [record], error, [])
        return None

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[LetteredUnit[K, V]]:
        """A unit of a transactional producer. If it fails for a reason of its own, its records become dead letters, in
        a unit together with its offsets, and ``unit.dead`` is the error.

        An error of the block itself is raised, and so is one with the outcome ``unknown``: the unit may be committed.
        """
        lettered = LetteredUnit(self.producer.unit())
        block_is_over = False
        try:
            async with lettered.unit:
                yield lettered
                block_is_over = True
        except DeliveryError as error:
            if not block_is_over or _may_be_committed(error) or not is_of_the_record(error):
                raise
            letters = [self._letter(record, error) for record in lettered.records]
            await self._put_all(letters, lettered.records, error, lettered.offsets)
            lettered.dead = error

    async def put(
        self,
        record: ProducerRecord[Any, Any],
        error: BaseException,
        *,
        attempts: int | None = None,
        origin: tuple[str, int, int] | None = None,
        offsets: Mapping[Group, Offsets] | None = None,
    ) -> None:
        """Sends the dead letter of a record that was read, and returns when it is delivered. Keys and values
        that are bytes are sent unchanged, without the producer's serializers.

        ``attempts``: how often delivering or processing it was tried; by default once more than its last dead letter
        says. ``origin``: topic, partition and offset that it was read from. ``offsets``, by group, are committed with
        the letter (transactional producers only), so that the record is not read again.

        Raises ``error`` with a note if the letter cannot be delivered, or must not be sent.
        """
        given = [] if offsets is None else [(group, dict(some)) for group, some in offsets.items()]
        if given and not self._in_units:
            raise IllegalArgumentException("offsets are committed with dead letters by transactional producers only")
        letter = self.letter(record, error, attempts=attempts, origin=origin)
        await self._put_all([letter], [record], error, given)

    async def _put_all(
        self,
        letters: Sequence[ProducerRecord[Any, Any]],
        records: Sequence[ProducerRecord[Any, Any]],
        error: BaseException,
        offsets: Sequence[tuple[Group, Offsets]],
    ) -> None:
        try:
            await self.deliver(letters, offsets)
        except KafkaError as failed:
            self.not_delivered(error, failed)
            raise error from failed
        for record in records:
            log.warning(
                "a record for %r became a dead letter in %r: %s", record.topic, self.topic, type(error).__name__
            )

    def not_delivered(self, error: BaseException, failed: KafkaError) -> None:
        """Notes on the record's error that its dead letter was not delivered."""
        error.add_note(f"its dead letter for {self.topic!r} was not delivered: {type(failed).__name__}: {failed}")

    async def deliver(
        self,
        letters: Sequence[ProducerRecord[Any, Any]],
        offsets: Sequence[tuple[Group, Offsets]],
    ) -> None:
        """Sends letters, with offsets in the same unit, and returns when they are delivered: without what their topic
        refuses (:func:`lessened`). Raises the error of their delivery."""
        left = list(letters)
        while True:
            sending: list[int] = []
            try:
                await self._deliver(left, offsets, sending)
                return
            except KafkaError as refused:
                one_of = range(len(left)) if isinstance(refused, UnitTooLargeException) else sending or range(len(left))
                less = {place: new for place in one_of if (new := lessened(left[place], refused)) is not None}
                if not less:
                    raise
                if not isinstance(refused, InvalidTimestampException):
                    # If it is not known which letter is too large, it is most likely the largest.
                    largest = max(less, key=lambda place: _size(left[place]))
                    less = {largest: less[largest]}
                left = [less.get(place, letter) for place, letter in enumerate(left)]

    async def _deliver(
        self,
        letters: Sequence[ProducerRecord[Any, Any]],
        offsets: Sequence[tuple[Group, Offsets]],
        sending: list[int],
    ) -> None:
        """``sending`` has the place of the letter that is being sent, while it is a single one."""
        if not self._in_units:
            for place, delivery in enumerate([self.producer.send(letter) for letter in letters]):
                sending[:] = [place]
                await delivery
            return
        async with self.producer.unit() as unit:
            for place, letter in enumerate(letters):
                sending[:] = [place]
                await unit.send(letter)
            sending.clear()
            for group, some in offsets:
                await unit.send_offsets(some, group)

    def letter(
        self,
        record: ProducerRecord[Any, Any],
        error: BaseException,
        *,
        attempts: int | None = None,
        origin: tuple[str, int, int] | None = None,
    ) -> ProducerRecord[Any, Any]:
        """The dead letter of a record, for a caller that sends it itself; the parameters are those of :meth:`put`.

        Raises ``error`` with a note if there must be none.
        """
        letter = self._letter(record, error, attempts=attempts, origin=origin)
        return letter._replace(key=_raw(letter.key), value=_raw(letter.value))

    def _letter(
        self,
        record: ProducerRecord[Any, Any],
        error: BaseException,
        *,
        attempts: int | None = None,
        origin: tuple[str, int, int] | None = None,
    ) -> ProducerRecord[Any, Any]:
        headers = list(record.headers or ())
        before = dict(headers)
        count = _number(before.get(PREFIX + "attempts")) + 1 if attempts is None else attempts
        deaths = _number(before.get(PREFIX + "deaths"))
        if record.topic == self.topic:
            error.add_note(f"it has no dead letter, because it is one: its topic is {self.topic!r}")
            raise error
        if deaths >= self._most_attempts:
            error.add_note(f"it has no further dead letter, because it has died {deaths} times")
            raise error
        told = {
            "topic": record.topic,
            "error": type(error).__name__,
            "message": str(error)[:MOST_WORDS],
            "outcome": error.outcome.value if isinstance(error, DeliveryError) else Outcome.NOT_SENT.value,
            "attempts": str(count),
            "deaths": str(deaths + 1),
            "time": str(time.time_ns() // 1_000_000),
        }
        if record.partition is not None:
            told["partition"] = str(record.partition)
        if origin is not None:
            told |= zip(("origin.topic", "origin.partition", "origin.offset"), map(str, origin), strict=True)
        replaced = {PREFIX + name for name in told}
        kept = [header for header in headers if header[0] not in replaced]
        own = [(PREFIX + name, text.encode(errors="replace")) for name, text in told.items()]
        return ProducerRecord(self.topic, record.value, record.key, None, record.timestamp_ms, [*kept, *own])


class LetteredUnit(Generic[K, V]):
    """A unit that remembers what it holds, for its dead letters."""

    def __init__(self, unit: Unit[K, V]) -> None:
        self.unit = unit
        self.dead: DeliveryError | None = None
        """Why its records became dead letters; None if they did not."""
        self.records: list[ProducerRecord[Any, Any]] = []
        self.offsets: list[tuple[Group, Offsets]] = []

    async def send(self, topic: Any, value: Any = None, **fields: Any) -> None:
        """Adds a record: see :meth:`aioproducer.Unit.send`."""
        record = _record(topic, value, fields)
        await self.unit.send(record)
        self.records.append(record)

    async def send_offsets(self, offsets: Offsets, group: Group) -> None:
        """Adds offsets: see :meth:`aioproducer.Unit.send_offsets`."""
        await self.unit.send_offsets(offsets, group)
        self.offsets.append((group, dict(offsets)))


def is_of_the_record(error: KafkaError) -> bool:
    """Whether the record, or its destination, is at fault: not misuse, and not an error that ends the producer."""
    if isinstance(error, PartitionerException | SerializationException):
        return True
    return isinstance(error, DeliveryError | ApiException) and not (
        error.fatal or isinstance(error, IllegalArgumentException | IllegalStateException)
    )


def _may_be_committed(error: KafkaError) -> bool:
    """Whether the unit that ended with it may be committed all the same."""
    return isinstance(error, DeliveryError) and error.outcome is not Outcome.NOT_SENT


def _raw(data: Any) -> Any:
    return Raw(data) if isinstance(data, bytes | bytearray | memoryview) else data


def _record(topic: Any, value: Any, fields: Mapping[str, Any]) -> ProducerRecord[Any, Any]:
    known = {name: fields.get(name) for name in ("key", "partition", "timestamp_ms", "headers")}
    if unknown := fields.keys() - known.keys():
        raise TypeError(f"send() has no argument {', '.join(sorted(unknown))}")
    return record_of(topic, value, known["key"], known["partition"], known["timestamp_ms"], known["headers"])


def lessened(letter: ProducerRecord[Any, Any], error: KafkaError) -> ProducerRecord[Any, Any] | None:
    """A letter that was refused with this error, without what was refused, which its headers tell; None if nothing is
    left to leave out.

    A timestamp that its topic does not allow; or key and value, and then the record's own headers, which cannot be
    serialized or are too large.
    """
    headers = list(letter.headers or ())
    if isinstance(error, InvalidTimestampException):
        if letter.timestamp_ms is None:
            return None
        headers.append((PREFIX + "timestamp", str(letter.timestamp_ms).encode()))
        return letter._replace(timestamp_ms=None, headers=headers)
    if not isinstance(error, SerializationException | RecordTooLargeException | UnitTooLargeException):
        return None
    if letter.key is not None or letter.value is not None:
        what = ", ".join(
            f"{name}: bytes of {len(data)} bytes" if isinstance(data, bytes) else f"{name}: {type(data).__name__}"
            for name, data in (("key", letter.key), ("value", letter.value))
            if data is not None
        )
        headers.append((PREFIX + "left-out", what.encode()))
        return letter._replace(key=None, value=None, headers=headers)
    own = [header for header in headers if header[0].startswith(PREFIX)]
    if len(own) == len(headers):
        return None
    own.append((PREFIX + "left-out", f"{len(headers) - len(own)} headers".encode()))
    return letter._replace(headers=own)


def _size(letter: ProducerRecord[Any, Any]) -> int:
    """Bytes that are known to be in it."""
    own = [letter.key, letter.value, *(data for _, data in letter.headers or ())]
    return sum(len(data) for data in own if isinstance(data, bytes))


def _number(text: bytes | None) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) < 10 else 0
