"""A task's part of a write that happens once: its rows, in a transaction that it leaves open for the driver.

``two_phases.py`` has the order of things.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from aioproducer.errors import (
    InvalidProducerEpochException,
    InvalidTxnStateException,
    KafkaError,
    ProducerFencedException,
)
from aioproducer.producer.producer import core_of
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.spark.exactly_once.content_digest import ContentDigest
from aioproducer.spark.exactly_once.decision import Decision, check_none_is_missing, check_order
from aioproducer.spark.exactly_once.ledger import KafkaLedger, open_ledger
from aioproducer.spark.exactly_once.marker import Marker
from aioproducer.spark.exactly_once.prepared import ONGOING, Outcome, Prepared, TooManyOpenException, name_of_slot
from aioproducer.spark.exactly_once.two_phases import write
from aioproducer.spark.exactly_once.way_out import with_way_out
from aioproducer.spark.sink.read_ahead import read_ahead
from aioproducer.spark.sink.task_producer import task_producer
from aioproducer.spark.sink.topic_streams import send_rows

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from aioproducer.spark.sink.sink_options import SinkOptions
    from aioproducer.spark.sink.task import Task

_ENDED_BY_OTHERS = (InvalidProducerEpochException, InvalidTxnStateException, ProducerFencedException)
"""What a producer is answered whose transaction the coordinator has aborted, or a newer producer."""

_SLOTS: Final = 100
"""Transactions of one partition that may be open at the same time."""


class TransactionTooLongException(KafkaError):
    """A task took longer than its transaction may, so brokers have aborted the transaction and the task has failed."""


async def write_once(
    options: SinkOptions, columns: Mapping[str, str], task: Task, batches: Iterator[RecordBatch]
) -> Outcome:
    """Writes the rows, and leaves their transaction open; or finds that they were decided before.

    TransactionTooLongException if the task took longer than ``transaction.timeout.ms``; MarkerMismatchException if a
    later epoch was written; MissingMarkerException if the epoch is not the first, and the markers of those before are
    gone. Whatever is raised, nothing of this attempt will be read.
    """
    where = str(task)

    def check(last: Decision | None) -> None:
        check_order(last, task.epoch, where)
        if not options.allow_missing_marker:
            place, streaming = str(options.marker_place), options.write_id is None
            check_none_is_missing(last, task.epoch, where, group=ledger.whole, place=place, streaming=streaming)

    with with_way_out(options, task.write):
        async with open_ledger(options, task.write, where) as ledger:
            await ledger.check_marker_topic()
            rows = _TaskRows(ledger, columns, task, batches)
            return await write(ledger, rows, task.epoch, task.partition, where, check)


class _TaskRows:
    """The rows of a task, which can be read once."""

    def __init__(
        self, ledger: KafkaLedger, columns: Mapping[str, str], task: Task, batches: Iterator[RecordBatch]
    ) -> None:
        self._ledger = ledger
        self._columns = columns
        self._task = task
        self._digest = ContentDigest(columns.values())
        self._rows = read_ahead(self._digest.through(batches))

    async def skip(self) -> Outcome:
        async for _ in self._rows:
            pass
        return Outcome(self._task.partition, self._digest.rows, self._digest.text(), None)

    async def hold(self) -> Outcome:
        ledger, task, digest, options = self._ledger, self._task, self._digest, self._ledger.options
        slot = await self._free_slot()
        name = ledger.transactional_id(name_of_slot(task.partition, slot))
        time = asyncio.get_running_loop().time
        async with task_producer(options, name) as producer:
            await producer.init_transactions()
            began = time()
            try:
                await producer.begin_transaction()
                await send_rows(producer, self._rows, self._columns, options.topic, str(task))
                await producer.partitions_for(options.marker_place.topic)  # makes the topic, if no row has
                marker = Marker(task.epoch, digest.rows, digest.text()).as_offset()
                await producer.send_offsets_to_transaction(
                    {options.marker_place: marker}, ledger.group_of(task.partition)
                )
                manager = core_of(producer).transactions
                assert isinstance(manager, TransactionManager)
                second = manager.second_protocol
                identity = await manager.hand_over()
            except KafkaError as error:  # closing the producer aborts the transaction
                if (late := too_long(error, options, time() - began, str(task))) is not None:
                    raise late from error
                raise
        return Outcome.held(digest.rows, digest.text(), Prepared(task.partition, slot, *identity, second))

    async def _free_slot(self) -> int:
        """A slot without an open transaction, so that the transaction of a finished attempt is not ended.

        Attempts that run at the same time begin to look at different places."""
        for slot in range(self._task.attempt, self._task.attempt + _SLOTS):
            name = self._ledger.transactional_id(name_of_slot(self._task.partition, slot))
            found = (await self._ledger.admin.describe_transactions([name]))[name]
            if found is None or found.state != ONGOING:
                return slot
        raise TooManyOpenException(
            f"{self._task}: {_SLOTS} transactions of this partition are open; brokers abort them after "
            "transaction.timeout.ms"
        )


def too_long(error: KafkaError, options: SinkOptions, seconds: float, where: str) -> TransactionTooLongException | None:
    """What a transaction has failed of that was under way for so long, if it is its time-out."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, _ENDED_BY_OTHERS):
        cause = cause.__cause__
    allowed = int(options.configs["transaction.timeout.ms"])
    if cause is None or seconds * 1000 < allowed:
        return None
    return TransactionTooLongException(
        f"{where}: its transaction was under way for {seconds:.1f} s, and brokers abort one after "
        f"transaction.timeout.ms = {allowed}, so this attempt has failed. Raise the option "
        "kafka.transaction.timeout.ms (brokers allow at most their transaction.max.timeout.ms), or repartition the "
        "rows into more and shorter tasks"
    )
