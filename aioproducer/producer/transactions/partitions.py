"""Adds partitions to a transaction before any write to them, once the markers of the last one should be written.

In the second protocol the write itself adds them. In the first one AddPartitionsToTxn does: a coordinator adds none of
the partitions of a request if one of them does not exist. Those that it names are asked for later, so that they do not
keep the others out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator

from aioproducer.errors import KafkaError
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.transactions.coordinator import TransactionCoordinator
from aioproducer.producer.transactions.status import TransactionStatus
from aioproducer.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.backoff import ExponentialBackoff


class TransactionPartitions:
    """Names partitions to the coordinator, all pending ones at once.

    ``joined(queues)`` reports added partitions; ``passed()`` returns when requests may have ended.
    """

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        status: TransactionStatus,
        supervisor: Supervisor,
        backoff: ExponentialBackoff,
        joined: Callable[[Iterable[PartitionQueue]], None],
        passed: Callable[[], Awaitable[object]],
    ) -> None:
        self._coordinator = coordinator
        self._status = status
        self._supervisor = supervisor
        self._backoff = backoff
        self._joined = joined
        self._passed = passed
        self._waiting: dict[PartitionQueue, None] = {}
        self._used: set[PartitionQueue] = set()
        """The partitions of the open transaction, or of the last one."""
        self._task: asyncio.Task[None] | None = None

    def begun(self) -> None:
        """A new transaction has begun, without partitions."""
        self._used.clear()

    def add(self, queue: PartitionQueue) -> None:
        if self._coordinator.protocol.second:
            if self._coordinator.pause_left() <= 0:
                self._joined((queue,))
                return
        else:
            self._used.add(queue)
        self._waiting[queue] = None
        if self._task is None:
            self._task = self._supervisor.spawn(self._run(), "aioproducer AddPartitionsToTxn")

    async def settled(self) -> None:
        """Returns when no request is under way: its answer must not arrive after the end of the transaction.

        Nor may a batch that was given up while it was under way: to a broker before 3.6 it would be part of the next
        transaction, or of one that never ends.
        """
        if self._task is not None:
            await asyncio.wait([self._task])
        while any(queue.in_flight for queue in self._used):
            await self._passed()

    async def _run(self) -> None:
        try:
            await asyncio.sleep(self._coordinator.pause_left())
            if not self._coordinator.protocol.second:
                await self._ask()
            elif self._status.goes_on():
                self._joined(self._waiting)
        except KafkaError:
            pass  # handled already: the transaction or the producer has failed
        finally:
            self._waiting.clear()
            self._task = None

    async def _ask(self) -> None:
        missing: set[tuple[str, int]] = set()
        failures = 0
        while self._waiting and self._status.goes_on():
            queues = tuple(queue for queue in self._waiting if (queue.topic, queue.partition) not in missing)
            if not queues:
                missing.clear()
                failures += 1
                await asyncio.sleep(self._backoff.wait(failures))
                continue
            response = await self._coordinator.ask(self._request(queues), AddPartitionsToTxnResponse, _codes)
            if found := _missing(response):
                missing |= found
                self._coordinator.partitions_missing()
                continue
            for queue in queues:
                del self._waiting[queue]
            self._joined(queues)

    def _request(self, queues: Iterable[PartitionQueue]) -> AddPartitionsToTxnRequest:
        coordinator = self._coordinator
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for queue in queues:
            topics.setdefault(queue.topic, AddPartitionsToTxnTopic(queue.topic, [])).partitions.append(queue.partition)
        return AddPartitionsToTxnRequest([], coordinator.transactional_id, *coordinator.identity, list(topics.values()))


def _by_partition(response: AddPartitionsToTxnResponse) -> Iterator[tuple[tuple[str, int], int]]:
    for topic in response.results_by_topic_v3_and_below:
        for partition in topic.results_by_partition:
            yield (topic.name, partition.partition_index), partition.partition_error_code


def _missing(response: AddPartitionsToTxnResponse) -> set[tuple[str, int]]:
    """The partitions that do not exist, or that the coordinator does not know of yet."""
    return {place for place, code in _by_partition(response) if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def _codes(response: AddPartitionsToTxnResponse) -> list[int]:
    """Of all partitions but those that are missing, and those that were not added because of them."""
    left_out = (
        {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED} if _missing(response) else set()
    )
    return [code for _, code in _by_partition(response) if code not in left_out]
