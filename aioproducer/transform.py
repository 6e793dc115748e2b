"""From topic to topic, exactly once: consume, process, produce, with the offsets in the same transaction.

::

    async def handle(message, output):
        output.send("orders.priced", price(message.value), key=message.key)

    transform = Transform(consumer, producer, handle, group_id="pricing", admin=admin)
    await transform.run()

For aiokafka's consumer, and any with its ``getmany``, ``assignment`` and ``seek``. ``docs/units.md`` has the promises.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from aioproducer.admin import KafkaAdmin
from aioproducer.dead_letters import DeadLetters, is_of_the_record
from aioproducer.errors import (
    DeliveryError,
    FencedInstanceIdException,
    IllegalArgumentException,
    IllegalGenerationException,
    KafkaError,
    Outcome,
    RebalanceInProgressException,
    TimeoutException,
    UnitTooLargeException,
    UnknownMemberIdException,
)
from aioproducer.producer.admission.admission import record_of
from aioproducer.producer.producer import KafkaProducer
from aioproducer.types import ConsumerGroupMetadata, ProducerRecord, TopicPartition

log = logging.getLogger(__name__)

_MOVED_ON: Final = (
    IllegalGenerationException,
    UnknownMemberIdException,
    FencedInstanceIdException,
    RebalanceInProgressException,
)
"""The group's coordinator refuses the offsets, because the group has rebalanced without this member."""

PAUSE: Final = 0.1
"""Seconds before a batch is read again that could not be committed."""


class Consumer(Protocol):
    """What is needed of a consumer, which is subscribed, started and stopped by its owner, and commits nothing."""

    async def getmany(self, *, timeout_ms: int, max_records: int) -> Mapping[Any, Sequence[Any]]:
        """Messages by partition."""

    def assignment(self) -> Any:
        """The partitions that it has, as pairs of topic and number."""

    def seek(self, partition: Any, offset: int) -> None:
        """Reads this partition from there."""


class Output:
    """What a handler makes of a message: records, in this order. Nothing is sent before the handler returns."""

    def __init__(self) -> None:
        self.records: list[ProducerRecord[Any, Any]] = []

    def send(self, topic: Any, value: Any = None, **fields: Any) -> None:
        """Adds a record, with the arguments of ``KafkaProducer.send``."""
        names = ("key", "partition", "timestamp_ms", "headers")
        if unknown := fields.keys() - set(names):
            raise TypeError(f"send() has no argument {', '.join(sorted(unknown))}")
        self.records.append(record_of(topic, value, *(fields.get(name) for name in names)))


class _Made(NamedTuple):
    """What a handler has made of a message: records, or its dead letter because of an error."""

    message: Any
    records: Sequence[ProducerRecord[Any, Any]]
    error: BaseException | None = None
    dead: ProducerRecord[Any, Any] | None = None


Handler = Callable[[Any, Output], Awaitable[object]]


def membership_of(consumer: Any) -> ConsumerGroupMetadata:
    """The membership of aiokafka's consumer in its group, or the result of a consumer's ``group_metadata()``."""
    if hasattr(consumer, "group_metadata"):
        given = consumer.group_metadata()
        return ConsumerGroupMetadata(*given)
    coordinator = consumer._coordinator
    instance = getattr(coordinator, "_group_instance_id", None)
    return ConsumerGroupMetadata(coordinator.group_id, coordinator.generation, coordinator.member_id, instance)


class Transform:
    """Reads messages, and commits what the handler makes of them together with their offsets, in units.

    Each batch of a partition is one unit, so that partitions share transactions. Handlers of a batch run concurrently,
    at most ``concurrency`` in all; what they make is sent in the order of the messages. After a rebalance it reads from
    the stable offsets that the group has committed (KIP-447), which ``admin`` asks for: so nothing is read while a
    transaction that covers it is undecided.

    A handler that raises is called ``attempts`` times. Then its message becomes a dead letter of ``letters``, in the
    same unit as the offset; without ``letters`` the error ends :meth:`run`. So does a message whose output is refused,
    or does not fit in ``buffer.memory``. A batch whose output does not fit is committed in smaller units.

    Output for a topic or partition that does not exist is tried again until it does; other partitions go on meanwhile.
    """

    def __init__(
        self,
        consumer: Consumer,
        producer: KafkaProducer[Any, Any],
        handler: Handler,
        *,
        group_id: str,
        admin: KafkaAdmin,
        letters: DeadLetters[Any, Any] | None = None,
        attempts: int = 1,
        concurrency: int = 50,
        max_records: int = 500,
        poll_ms: int = 200,
        membership: Callable[[], ConsumerGroupMetadata] | None = None,
    ) -> None:
        if producer.config.transactional_id is None:
            raise IllegalArgumentException("a transform needs a producer with a transactional.id")
        if getattr(consumer, "_enable_auto_commit", False):
            raise IllegalArgumentException("the consumer commits by itself: give it enable_auto_commit=False")
        if letters is not None and letters.producer is not producer:
            raise IllegalArgumentException("the dead letters of a transform need its own producer")
        for name, number in (("attempts", attempts), ("concurrency", concurrency), ("max_records", max_records)):
            if number < 1:
                raise IllegalArgumentException(f"{name} is {number}; it must be 1 or more")
        self._consumer = consumer
        self._producer = producer
        self._handler = handler
        self._group_id = group_id
        self._admin = admin
        self._letters = letters
        self._attempts = attempts
        self._free = asyncio.Semaphore(concurrency)
        self._max_records = max_records
        self._poll_ms = poll_ms
        self._membership = membership or (lambda: membership_of(consumer))
        self._placed: tuple[ConsumerGroupMetadata, frozenset[Any]] | None = None
        """The membership and the partitions for which the consumer was last placed at the committed offsets."""
        self._unread: dict[TopicPartition, int] = {}
        """The first offsets of batches that were read and not committed: what is read again if the group has committed
        nothing for the partition."""
        self._stopped = False

    def stop(self) -> None:
        """Makes :meth:`run` return when the present batches are committed."""
        self._stopped = True

    async def run(self) -> None:
        """Runs until it is stopped or cancelled; raises what ends it: an error of a handler without ``letters``, one
        that ends the producer, or a unit whose outcome is ``unknown``. Start again with a new producer then:
        ``init_transactions`` settles what is open, and nothing is lost or doubled."""
        while not self._stopped:
            member = self._membership()
            assigned = frozenset(self._consumer.assignment())
            if assigned and (member, assigned) != self._placed:
                await self._place(assigned)
                self._placed = (member, assigned)
            found = await self._read()
            batches = [(TopicPartition(*where), list(messages)) for where, messages in found.items() if messages]
            for where, messages in batches:
                self._unread.setdefault(where, messages[0].offset)
            if (self._membership(), frozenset(self._consumer.assignment())) != self._placed:
                self._placed = None  # the group has rebalanced: these messages may be from before
                continue
            again = await _all(*(self._commit(where, messages, member) for where, messages in batches))
            if any(again):
                self._placed = None
                await asyncio.sleep(PAUSE)

    async def _read(self) -> Mapping[Any, Sequence[Any]]:
        try:
            return await self._consumer.getmany(timeout_ms=self._poll_ms, max_records=self._max_records)
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # aiokafka's getmany raises what its own tasks have ended with, and they may have been cancelled.
            raise KafkaError(
                "the consumer's getmany() was cancelled from inside: start another consumer"
            ) from cancelled

    async def _place(self, assigned: frozenset[Any]) -> None:
        """Places the consumer at the offsets that are committed, once no transaction is undecided."""
        wanted = [TopicPartition(*where) for where in assigned]
        committed = await self._admin.list_consumer_group_offsets(self._group_id, wanted, require_stable=True)
        now = set(self._consumer.assignment())
        for where in assigned & now:
            offset = committed.get(TopicPartition(*where))
            unread = self._unread.get(TopicPartition(*where))
            if offset is not None:
                self._consumer.seek(where, offset.offset)
            elif unread is not None:
                self._consumer.seek(where, unread)

    async def _commit(self, where: TopicPartition, messages: list[Any], member: ConsumerGroupMetadata) -> bool:
        """Commits what is made of a batch; returns whether the batch must be read again."""
        made = await _all(*(self._make(message) for message in messages))
        return await self._commit_together(where, made, member)

    async def _commit_together(
        self, where: TopicPartition, made: Sequence[_Made], member: ConsumerGroupMetadata
    ) -> bool:
        """Commits what is made of some messages as one unit: in smaller ones if it is too large for one, or refused."""
        records = [record for one in made for record in (one.records if one.dead is None else [one.dead])]
        try:
            await self._unit(where, records, made[-1].message, member)
        except UnitTooLargeException:
            if len(made) == 1:
                return await self._one_by_one(where, made, member)
            middle = len(made) // 2
            return await self._commit_together(where, made[:middle], member) or await self._commit_together(
                where, made[middle:], member
            )
        except KafkaError as error:
            if not self._goes_on(error):
                raise
            # Outside a delivery it is about one record, so that those before it can be committed.
            if isinstance(error, DeliveryError) and _is_transient(error):
                log.warning("%s from offset %d is read again: %s", where, made[0].message.offset, error)
                return True
            return await self._one_by_one(where, made, member)
        return False

    async def _one_by_one(self, where: TopicPartition, made: Sequence[_Made], member: ConsumerGroupMetadata) -> bool:
        """A record of the batch is refused: finds the message that it was made from, which becomes a dead letter."""
        for one in made:
            error, letter = one.error, one.dead
            if letter is None:
                try:
                    await self._unit(where, one.records, one.message, member)
                except KafkaError as refused:
                    if not self._goes_on(refused):
                        raise
                    if _is_transient(refused):
                        log.warning("%s from offset %d is read again: %s", where, one.message.offset, refused)
                        return True
                    error, letter = refused, self._dead(one.message, refused, 1)
            if letter is not None and await self._bury(where, one.message, error, letter, member):
                return True
        return False

    async def _bury(
        self,
        where: TopicPartition,
        message: Any,
        error: BaseException | None,
        letter: ProducerRecord[Any, Any],
        member: ConsumerGroupMetadata,
    ) -> bool:
        """Commits the dead letter of a message; returns whether the message must be read again."""
        assert self._letters is not None
        assert error is not None
        try:
            await self._letters.deliver([letter], [(member, {where: message.offset + 1})])
        except KafkaError as failed:
            if isinstance(failed, DeliveryError) and self._goes_on(failed) and _is_transient(failed):
                log.warning("%s from offset %d is read again: %s", where, message.offset, failed)
                return True
            if not self._goes_on(failed):
                raise
            self._letters.not_delivered(error, failed)
            raise error from failed
        self._unread.pop(where, None)
        return False

    def _goes_on(self, error: KafkaError) -> bool:
        """Whether the producer is usable after the error of a unit, and nothing of that unit is committed."""
        if isinstance(error, DeliveryError):
            return error.outcome is Outcome.NOT_SENT and not error.fatal
        return isinstance(error, UnitTooLargeException) or is_of_the_record(error)

    async def _unit(
        self,
        where: TopicPartition,
        records: Sequence[ProducerRecord[Any, Any]],
        last: Any,
        member: ConsumerGroupMetadata,
    ) -> None:
        async with self._producer.unit() as unit:
            for record in records:
                await unit.send(record)
            await unit.send_offsets({where: last.offset + 1}, member)
        self._unread.pop(where, None)

    async def _make(self, message: Any) -> _Made:
        """What the handler makes of the message, or its dead letter."""
        async with self._free:
            for attempt in range(1, self._attempts + 1):
                output = Output()
                try:
                    await self._handler(message, output)
                except Exception as error:
                    if attempt == self._attempts:
                        return _Made(message, [], error, self._dead(message, error, attempt))
                else:
                    return _Made(message, output.records)
        raise AssertionError("unreachable")

    def _dead(self, message: Any, error: BaseException, attempts: int) -> ProducerRecord[Any, Any]:
        where = (message.topic, message.partition, message.offset)
        if self._letters is None:
            error.add_note("the message at offset {2} of {0}-{1} cannot be processed".format(*where))
            raise error
        headers = tuple(message.headers or ())
        record = ProducerRecord(
            message.topic, message.value, message.key, timestamp_ms=_timestamp(message), headers=headers
        )
        return self._letters.letter(record, error, attempts=attempts, origin=where)


def _is_transient(error: KafkaError) -> bool:
    """Whether the same unit may succeed later, so that its messages are read again."""
    if isinstance(error, UnitTooLargeException):
        return False
    return isinstance(error, (*_MOVED_ON, TimeoutException)) or not is_of_the_record(error)


def _timestamp(message: Any) -> int | None:
    """When the message was written, in milliseconds since the epoch, if its consumer says so."""
    at = getattr(message, "timestamp", None)
    return at if isinstance(at, int) and at >= 0 else None


async def _all(*works: Awaitable[Any]) -> list[Any]:
    """The results of all of them, which have all ended when this returns or raises."""
    results = await asyncio.gather(*works, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
