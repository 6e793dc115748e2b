"""Partitions of a transaction of the first protocol: AddPartitionsToTxn, before anything is written to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from aioproducer.errors import KafkaError
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.transactions.coordinator import TransactionCoordinator
from aioproducer.producer.transactions.status import TransactionStatus
from aioproducer.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)


class TransactionPartitions:
    """Names partitions to the coordinator, as many at once as there are.

    ``spawn(work, name)`` starts a task that may not die unnoticed; ``joined(queues)`` is told of those that were added;
    ``news()`` returns when requests may have ended.
    """

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        status: TransactionStatus,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
        joined: Callable[[Iterable[PartitionQueue]], None],
        news: Callable[[], Awaitable[object]],
    ) -> None:
        self._coordinator = coordinator
        self._status = status
        self._spawn = spawn
        self._joined = joined
        self._news = news
        self._waiting: dict[PartitionQueue, None] = {}
        self._used: set[PartitionQueue] = set()
        """Those of the transaction that is open, or was."""
        self._task: asyncio.Task[None] | None = None

    def begun(self) -> None:
        """Another transaction has begun, without any partitions."""
        self._used.clear()

    def add(self, queue: PartitionQueue) -> None:
        self._used.add(queue)
        self._waiting[queue] = None
        if self._task is None:
            self._task = self._spawn(self._run(), "aioproducer AddPartitionsToTxn")

    async def settled(self) -> None:
        """Returns when nothing is under way: its answer may not come after the end of the transaction.

        Nor may a batch that was given up while it was under way: to a broker before 3.6 it would be part of the next
        transaction, or of one that never ends.
        """
        if self._task is not None:
            await asyncio.wait([self._task])
        while any(queue.in_flight for queue in self._used):
            await self._news()

    async def _run(self) -> None:
        try:
            while self._waiting and self._status.goes_on():
                queues = tuple(self._waiting)
                await self._coordinator.ask(self._request(queues), AddPartitionsToTxnResponse, _codes)
                for queue in queues:
                    del self._waiting[queue]
                self._joined(queues)
        except KafkaError:
            pass  # it has been taken: the transaction, or the producer, has failed
        finally:
            self._waiting.clear()
            self._task = None

    def _request(self, queues: Iterable[PartitionQueue]) -> AddPartitionsToTxnRequest:
        coordinator = self._coordinator
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for queue in queues:
            topics.setdefault(queue.topic, AddPartitionsToTxnTopic(queue.topic, [])).partitions.append(queue.partition)
        return AddPartitionsToTxnRequest([], coordinator.transactional_id, *coordinator.identity, list(topics.values()))


def _codes(response: AddPartitionsToTxnResponse) -> list[int]:
    return [
        partition.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]
