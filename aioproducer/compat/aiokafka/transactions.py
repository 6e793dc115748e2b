"""Transactions of aiokafka's producer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aioproducer import KafkaProducer, OffsetAndMetadata, TopicPartition
from aioproducer.compat.aiokafka import errors
from aioproducer.compat.aiokafka.error_translation import ErrorTranslation


class Transactions:
    """Begins and ends the transactions of one producer, and checks its calls as aiokafka does."""

    def __init__(self, producer: KafkaProducer[Any, Any], translation: ErrorTranslation) -> None:
        self._producer = producer
        self._translation = translation
        self._in_transaction = False

    async def begin(self) -> None:
        self._check_transactional()
        with self._translation.translating():
            await self._producer.begin_transaction()
        self._in_transaction = True

    async def commit(self) -> None:
        self._check_transactional()
        self._in_transaction = False
        with self._translation.translating():
            await self._producer.commit_transaction()

    async def abort(self) -> None:
        self._check_transactional()
        self._in_transaction = False
        with self._translation.translating():
            await self._producer.abort_transaction()

    @asynccontextmanager
    async def block(self) -> AsyncIterator[None]:
        self._check_transactional()
        with self._translation.translating():
            async with self._producer.transaction():
                self._in_transaction = True
                try:
                    yield
                finally:
                    self._in_transaction = False

    async def send_offsets(self, offsets: Mapping[Any, int | tuple[int, str]], group_id: str) -> None:
        self._check_transactional()
        if not self._in_transaction:
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
