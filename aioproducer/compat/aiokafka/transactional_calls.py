"""Transactions of aiokafka's producer, and how all of its calls tell what goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

from aioproducer import KafkaError, KafkaProducer, OffsetAndMetadata, TopicPartition
from aioproducer.compat.aiokafka import errors
from aioproducer.errors import IllegalStateException, SerializationException


class TransactionalCalls:
    """A part of a producer."""

    _closed = False  # under its name: FastStream looks at it

    def __init__(self, producer: KafkaProducer[Any, Any]) -> None:
        self._producer = producer
        self._transactional = producer.config.transactional_id is not None
        self._in_transaction = False

    async def begin_transaction(self) -> None:
        """From now on records belong to a transaction."""
        self._check_transactional()
        with self._told():
            await self._producer.begin_transaction()
        self._in_transaction = True

    async def commit_transaction(self) -> None:
        """Delivers every record of the transaction, and commits it; raises what kept a record from being delivered."""
        self._check_transactional()
        self._in_transaction = False
        with self._told():
            await self._producer.commit_transaction()

    async def abort_transaction(self) -> None:
        """Gives up the transaction."""
        self._check_transactional()
        self._in_transaction = False
        with self._told():
            await self._producer.abort_transaction()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction: committed at the end of the block, aborted if that raises or is cancelled."""
        self._check_transactional()
        with self._told():
            async with self._producer.transaction():
                self._in_transaction = True
                try:
                    yield self
                finally:
                    self._in_transaction = False

    async def send_offsets_to_transaction(self, offsets: Mapping[Any, int | tuple[int, str]], group_id: str) -> None:
        """Makes a group's offsets (of the next records to read) a part of the transaction.

        ``offsets``: by topic and partition, as a pair, a number or a number and a note.
        """
        self._check_transactional()
        if not self._in_transaction:
            raise errors.IllegalOperation("there is no transaction: begin one first")
        if not group_id or not isinstance(group_id, str):
            raise ValueError(f"the group is {group_id!r}; it must be the id of one")
        if not offsets:
            raise ValueError("there are no offsets")
        wanted = {TopicPartition(*partition): _offset(told) for partition, told in offsets.items()}
        with self._told():
            await self._producer.send_offsets_to_transaction(wanted, group_id)

    # Errors

    def _check_transactional(self) -> None:
        if not self._transactional:
            raise errors.IllegalOperation("transactions need a transactional_id")

    @contextmanager
    def _told(self, *, late: str = "") -> Iterator[None]:
        """Errors of this package are raised as aiokafka's."""
        try:
            yield
        except KafkaError as error:
            raise self._translated(error, late=late) from error

    def _translated(self, error: KafkaError, *, late: str = "") -> Exception:
        if isinstance(error, SerializationException):
            return TypeError(str(error))
        if isinstance(error, IllegalStateException) and not isinstance(error.__cause__, KafkaError):
            if self._closed:
                return errors.ProducerClosed(str(error))
            if self._transactional:
                return errors.IllegalOperation(str(error))
        return errors.translated(error, late=late)


def _offset(told: int | tuple[int, str]) -> OffsetAndMetadata:
    return OffsetAndMetadata(told) if isinstance(told, int) else OffsetAndMetadata(*told)
