"""Bugs of transactional producers. Tests plant each of them, and the simulation must find it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from aioproducer.errors import InvalidTxnStateException, ProducerFencedException
from aioproducer.net.coordinators import Coordinators
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch, ProducerIds
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.parking.parking_lot import ParkingLot
from aioproducer.producer.producer import KafkaProducer
from aioproducer.producer.transactions.coordinator import TransactionCoordinator
from aioproducer.producer.transactions.operation import Operation
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.protocol.api_key import ApiKey

from .circumstances import (
    impatient,
    in_one_life,
    of_the_first_protocol,
    of_the_second_protocol,
    only,
    transactions,
    undisturbed,
    with_rivals,
    withdrawing,
)
from .planted_bugs import bug, wrap


@bug(impatient)
def a_cancelled_block_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def transaction(self: KafkaProducer) -> AsyncIterator[KafkaProducer]:
        await self.begin_transaction()
        try:
            yield self
        except asyncio.CancelledError:
            await self.commit_transaction()
            raise
        except BaseException:
            await self.abort_transaction()
            raise
        await self.commit_transaction()

    monkeypatch.setattr(KafkaProducer, "transaction", transaction)


@bug(transactions)
def giving_up_waiting_for_a_commit_takes_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ended(original: Any, self: Operation, until: float) -> Any:
        try:
            return await original(self, until)
        except asyncio.CancelledError:
            self._task.cancel()
            raise

    wrap(monkeypatch, Operation, "ended", ended)


@bug(undisturbed(of_the_second_protocol))
def the_epoch_that_the_end_of_a_transaction_brings_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    def given(original: Any, self: ProducerIds, identity: ProducerIdAndEpoch) -> None:
        if self.current is None or self.current.producer_id != identity.producer_id:
            original(self, identity)

    wrap(monkeypatch, ProducerIds, "given", given)


@bug(undisturbed(of_the_second_protocol))
def sequences_go_on_in_the_next_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def stamp(original: Any, self: PartitionSequences, batch: Any, now: float, now_ms: int) -> None:
        if self.transactional and self.identity is not None:
            self.identity = self._ids.current
        original(self, batch, now, now_ms)

    wrap(monkeypatch, PartitionSequences, "stamp", stamp)


@bug(of_the_first_protocol)
def records_are_sent_before_their_partition_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    def partition_used(original: Any, self: TransactionManager, queue: Any) -> None:
        original(self, queue)
        self._joined((queue,))

    wrap(monkeypatch, TransactionManager, "partition_used", partition_used)


@bug(transactions)
def partitions_of_the_last_transaction_are_not_added_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin(original: Any, self: TransactionManager, **more: Any) -> None:
        await original(self, **more)
        self._ids.transaction = 1

    wrap(monkeypatch, TransactionManager, "begin", begin)


@bug(only(in_one_life, codes=0.3))
def a_failed_record_does_not_keep_its_transaction_from_being_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransactionManager, "_fail_transaction", lambda self, error: None)


@bug(transactions)
def a_commit_does_not_wait_for_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    async def commit(original: Any, self: TransactionManager) -> None:
        records = self._records
        self._records = replace(records, flush=lambda: asyncio.sleep(0))
        try:
            await original(self)
        finally:
            self._records = records

    wrap(monkeypatch, TransactionManager, "_commit", commit)


@bug(transactions)
def records_slip_in_while_the_transaction_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def commit(original: Any, self: TransactionManager) -> None:
        records = self._records
        self._records = replace(records, gate=lambda is_open: None)
        try:
            await original(self)
        finally:
            self._records = records

    wrap(monkeypatch, TransactionManager, "_commit", commit)


@bug(transactions)
def an_abort_is_not_sent_to_the_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    async def end(original: Any, self: TransactionCoordinator, *, committed: bool) -> None:
        if committed:
            await original(self, committed=committed)

    wrap(monkeypatch, TransactionCoordinator, "end", end)


@bug(with_rivals)
def a_fenced_producer_reports_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def end(original: Any, self: TransactionCoordinator, *, committed: bool) -> None:
        try:
            await original(self, committed=committed)
        except ProducerFencedException:
            pass

    wrap(monkeypatch, TransactionCoordinator, "end", end)


@bug(only(of_the_second_protocol, windows=0.1))
def a_commit_fails_as_if_it_came_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    async def end(original: Any, self: TransactionCoordinator, *, committed: bool) -> None:
        if committed:
            raise self._final(ApiKey.END_TXN, InvalidTxnStateException("")) or AssertionError
        await original(self, committed=committed)

    wrap(monkeypatch, TransactionCoordinator, "end", end)


@bug(transactions)
def a_transaction_of_offsets_alone_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransactionCoordinator, "started", lambda self: None)


@bug(transactions)
def offsets_are_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(original: Any, self: TransactionCoordinator, request: Any, *args: Any, **kwargs: Any) -> Any:
        if request.API_KEY is not ApiKey.TXN_OFFSET_COMMIT:
            return await original(self, request, *args, **kwargs)
        try:
            async with asyncio.timeout(0.001):
                return await original(self, request, *args, **kwargs)
        except TimeoutError:
            return None

    wrap(monkeypatch, TransactionCoordinator, "ask", ask)


@bug(only(in_one_life, coordinators=0.3))
def a_coordinator_is_never_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coordinators, "forget", lambda *args: None)


@bug(only(withdrawing, late=0.2, metadata=0.2))
def a_withdrawn_record_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    def withdraw(original: Any, self: ParkingLot, record: Any) -> None:
        failed, self._on_failed = self._on_failed, lambda error: None
        try:
            original(self, record)
        finally:
            self._on_failed = failed

    wrap(monkeypatch, ParkingLot, "withdraw", withdraw)
