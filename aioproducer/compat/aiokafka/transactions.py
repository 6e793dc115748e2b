"""Transactions of aiokafka's producer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aioproducer import KafkaProducer, OffsetAndMetadata, TopicPartition
from aioproducer.compat.aiokafka import errors
from aioproducer.compat.aiokafka.error_translation import ErrorTranslation
from aioproducer.errors import IllegalStateException, TransactionAbortableException

Call = Callable[[], Awaitable[None]]


class Transactions:
    """Begins and ends the transactions of one producer, and checks its calls as aiokafka does."""

    def __init__(self, producer: KafkaProducer[Any, Any], translation: ErrorTranslation) -> None:
        self._producer = producer
        self._translation = translation
        self.is_open = False
        """Whether a transaction has begun, and neither a commit nor an abort has: it can be aborted."""

    async def begin(self) -> None:
        self._check_transactional()
        with self._translation.translating():
            await self._producer.begin_transaction()
        self.is_open = True

    async def commit(self) -> None:
        self._check_transactional()
        was_open, self.is_open = self.is_open, False
        with self._translation.translating():
            try:
                await self._producer.commit_transaction()
            except (IllegalStateException, TransactionAbortableException):
                self.is_open = was_open  # refused, as by offsets under way, or records have failed
                raise

    async def abort(self) -> None:
        self._check_transactional()
        self.is_open = False
        with self._translation.translating():
            await self._producer.abort_transaction()

    @asynccontextmanager
    async def block(self, begin: Call, commit: Call, abort: Call) -> AsyncIterator[None]:
        """A transaction by these calls, which make those above: aborted if the block raises, or a record has failed.

        The error stays the one that is raised if the transaction cannot be aborted: a note on it says why.
        """
        await begin()
        try:
            yield
            await commit()
        except BaseException as error:
            if self.is_open:
                try:
                    await abort()
                except errors.KafkaError as failed:
                    error.add_note(f"the transaction was not aborted: {failed}")
            raise

    async def send_offsets(self, offsets: Mapping[Any, int | tuple[int, str]], group_id: str) -> None:
        self._check_transactional()
        if not self.is_open:
            raise errors.IllegalOperation("there is no transaction: begin one first")
        if not group_id or not isinstance(group_id, str):
            raise ValueError(f"the group is {group_id!r}; it must be the id of one")
        if not offsets:
            raise ValueError("there are no offsets")
        wanted = {TopicPartition(*partition): _offset(given) for partition, given in offsets.items()}
        with self._translation.translating():
            await self._producer.send_offsets_to_transaction(wanted, group_id)

    def _check_transactional(self) -> None:
        if self._producer.config.transactional_id is None:
            raise errors.IllegalOperation("transactions need a transactional_id")


def _offset(given: int | tuple[int, str]) -> OffsetAndMetadata:
    return OffsetAndMetadata(given) if isinstance(given, int) else OffsetAndMetadata(*given)
