"""The side of Kafka: rows and position in one transaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.dead_letters import PREFIX, DeadLetters, is_of_the_record, lessened
from aioproducer.errors import (
    KafkaError,
    RetriableException,
    SerializationException,
    TopicExistsException,
    UnknownTopicOrPartitionException,
)
from aioproducer.outbox.errors import RowRefusedException
from aioproducer.outbox.marker import Marker
from aioproducer.outbox.row import Row
from aioproducer.producer.bulk.result import BulkResult
from aioproducer.producer.producer import KafkaProducer
from aioproducer.producer.units.unit_blame import is_of_the_transaction
from aioproducer.types import ProducerRecord, TopicPartition

log = logging.getLogger(__name__)

Record = ProducerRecord[Any, Any]

ROW_HEADER: Final = PREFIX + "row"
"""Of a dead letter: the table and the id of its row."""


class Transactions:
    """The transactions of one relay; its group has the marker, and no members."""

    def __init__(
        self, producer: KafkaProducer[Any, Any], name: str, position_topic: str, table: str, letters: str | None
    ) -> None:
        self._producer = producer
        self._name = name
        self._table = table
        self._letters = None if letters is None else DeadLetters(producer, letters)
        self._where = TopicPartition(position_topic, 0)
        self._dead: dict[int, Record] = {}
        """The dead letters of refused rows that are not committed yet, by id."""

    async def begin(self, admin: KafkaAdmin) -> Marker | None:
        """Fences earlier relays of this name, and returns the marker, once no transaction is undecided."""
        topic = self._where.topic
        try:
            await admin.describe_topic(topic)
        except UnknownTopicOrPartitionException:
            try:
                await admin.create_topic(NewTopic(topic, 1))
            except TopicExistsException:
                pass
            await self._producer.partitions_for(topic)
        await self._producer.init_transactions()
        committed = await admin.list_consumer_group_offsets(self._name, [self._where], require_stable=True)
        there = committed[self._where]
        return None if there is None else Marker.read(there, self._name)

    async def mark(self, marker: Marker) -> None:
        """Commits the marker alone."""
        async with self._producer.transaction():
            await self._producer.send_offsets_to_transaction({self._where: marker.as_offset()}, self._name)

    async def commit(self, rows: Sequence[Row], marker_at: Callable[[Row], Marker]) -> int:
        """Commits the records of the rows, with the marker that says so; returns how many became dead letters.

        A row whose record fails is tried alone, because the record may only have shared a batch with another one. So a
        page may take several transactions. RowRefusedException if a row cannot be sent and there are no dead letters.
        """
        dead = 0
        left = list(rows)
        while left:
            try:
                await self._try(left, [self._record_of(row) for row in left], marker_at(left[-1]))
            except _Refused as refused:
                if len(left) == 1:
                    self._refuse(left[0], refused.error)
                    continue
                dead += await self.commit(left[: refused.index], marker_at)
                dead += await self.commit([left[refused.index]], marker_at)
                left = left[refused.index + 1 :]
            else:
                dead += sum(self._dead.pop(row.id, None) is not None for row in left)
                left = []
        return dead

    async def _try(self, rows: Sequence[Row], records: Sequence[Record], marker: Marker) -> None:
        by_topic: dict[str, list[int]] = {}
        for index, record in enumerate(records):
            by_topic.setdefault(record.topic, []).append(index)
        async with self._producer.transaction():
            results = await _all(
                self._producer.send_offsets_to_transaction({self._where: marker.as_offset()}, self._name),
                *(self._send(topic, [records[index] for index in places]) for topic, places in by_topic.items()),
            )
            failed = [
                (places[index], error)
                for places, result in zip(by_topic.values(), results[1:], strict=True)
                for index, error in result.errors
            ]
            suspected = [(index, error) for index, error in failed if _is_suspect(error)]
            if suspected:
                raise _Refused(*min(suspected, key=lambda one: one[0]))
            for _, error in failed:
                raise error

    async def _send(self, topic: str, records: Sequence[Record]) -> BulkResult:
        return await self._producer.send_many(
            topic,
            [record.value for record in records],
            keys=[record.key for record in records],
            partitions=[record.partition for record in records],
            timestamps_ms=[record.timestamp_ms for record in records],
            headers=[record.headers for record in records],
        )

    def _record_of(self, row: Row) -> Record:
        if row.id in self._dead:
            return self._dead[row.id]
        try:
            return row.record()
        except SerializationException as error:
            self._refuse(row, error)
            return self._dead[row.id]

    def _refuse(self, row: Row, error: KafkaError) -> None:
        """Gives the row a dead letter; RowRefusedException if it can have none."""
        where = f"row {row.id} of {self._table}, for the topic {row.topic}"
        before = self._dead.get(row.id)
        if self._letters is None or row.topic == self._letters.topic:
            way = (
                ", or the relay has a topic for dead letters"
                if self._letters is None
                else "; the topic of dead letters can have none of its own"
            )
            raise RowRefusedException(
                f"{where}, cannot be sent: {type(error).__name__}: {error}. No later row is relayed until the row is "
                f"corrected or deleted{way}",
                row.id,
            ) from error
        if before is None:
            try:
                letter = self._letters.letter(_readable(row), error, attempts=1)
            except KafkaError as refused:
                raise RowRefusedException(
                    f"{where}, cannot be sent, and has no further dead letter, because it has had too many: "
                    f"{type(error).__name__}: {error}",
                    row.id,
                ) from refused
            headers = [*(letter.headers or ()), (ROW_HEADER, f"{self._table}/{row.id}".encode())]
            self._dead[row.id] = letter._replace(headers=headers)
            log.warning("%s, becomes a dead letter in %s: %s", where, self._letters.topic, error)
        elif (less := lessened(before, error)) is not None:
            self._dead[row.id] = less
        else:
            raise RowRefusedException(
                f"{where}, cannot be sent, and neither can its dead letter for {self._letters.topic}: "
                f"{type(error).__name__}: {error}",
                row.id,
            ) from error


class _Refused(Exception):
    """A record of the transaction was refused: the first one, by its place."""

    def __init__(self, index: int, error: KafkaError) -> None:
        self.index = index
        self.error = error


def _readable(row: Row) -> Record:
    """The row's record, without headers if these are not of the documented form."""
    try:
        return row.record()
    except SerializationException:
        return row.bare_record()._replace(headers=[(PREFIX + "left-out", b"headers")])


def _is_suspect(error: KafkaError) -> bool:
    """Whether the record may be at fault, and would be refused again."""
    return is_of_the_record(error) and not isinstance(error, RetriableException) and not is_of_the_transaction(error)


async def _all(*works: Awaitable[Any]) -> list[Any]:
    """The results of all of them, which have all ended when this returns or raises."""
    results = await asyncio.gather(*works, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
