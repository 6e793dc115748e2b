"""A workload checks the results of its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from aioproducer.errors import IllegalStateException, KafkaError, SerializationException, TimeoutException
from aioproducer.producer.bulk.result import BulkResult
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.producer import KafkaProducer
from aioproducer.testing.simulation.checks.ledger import Ledger
from aioproducer.testing.simulation.checks.violations import Violations
from aioproducer.testing.simulation.trace import Trace
from aioproducer.testing.simulation.users.serializer import turn_around
from aioproducer.testing.simulation.users.workload import Work
from aioproducer.testing.simulation.work_plan import WorkPlan
from aioproducer.types import ProducerRecord
from tests.producer.simulations.standing_loop import new_result
from tests.testing.simulation.histories import History, failure
from tests.testing.simulation.simulated import World

PLAN = WorkPlan(
    producer=0, records=200, pause=0.0, burst=10, large=0.1, waits=0.0, enqueues=False, cancels=0.0, flushes=0.0
)


class Lot:
    bytes = 0


class FakeProducer:
    """A producer that takes everything; each record ends as ``end(result)`` says, after ``after`` seconds."""

    def __init__(self, loop: Any, end: Callable[[ProduceResult], object], after: float = 0.1) -> None:
        self._loop = loop
        self._end = end
        self._after = after
        self._lot = Lot()
        self._core = SimpleNamespace(accumulator=SimpleNamespace(topics={}))  # no batch is open
        self.records: list[Any] = []
        self.flushes = 0
        self.closed_after = 1 << 30
        self.miscounts = 0
        self.tables = 0
        self.serializes = False

    def send(self, topic: Any, value: Any = None, **fields: Any) -> Delivery:
        record = topic if isinstance(topic, ProducerRecord) else ProducerRecord(topic, value, **fields)
        if len(self.records) >= self.closed_after:
            raise IllegalStateException("the producer is closed")
        if self.serializes and len(record.value or b"") % 41 == 38:
            raise SerializationException("not this one")
        self.records.append(record)
        result = new_result(self._loop, record.topic, 0)
        self._loop.call_later(self._after, self._end, result)
        return Delivery(result, 0)

    async def enqueue(self, topic: Any, value: Any = None, **fields: Any) -> Delivery:
        await asyncio.sleep(self._after)
        return self.send(topic, value, **fields)

    async def send_table(self, topic: str, table: Any, **columns: str) -> BulkResult:
        rows = {name: table[column].to_pylist() for name, column in columns.items()}
        rows["headers"] = [
            None if headers is None else tuple((header["name"], header["value"]) for header in headers)
            for headers in rows["headers"]
        ]
        self.tables += 1
        return await self.send_many(
            topic,
            rows["value"],
            keys=rows["key"],
            partitions=rows["partition"],
            timestamps_ms=rows["timestamp"],
            headers=rows["headers"],
        )

    async def send_many(self, topic: str, values: list[Any], **columns: list[Any]) -> BulkResult:
        """A result in which records with a key fail."""
        await asyncio.sleep(self._after)
        keys = columns["keys"]
        failed = [place for place, key in enumerate(keys) if key is not None]
        self.records += columns["headers"]
        count = len(values) + self.miscounts
        return BulkResult(count, count - len(failed), {}, [(failed, failure(KafkaError("a key")))] if failed else [])

    async def flush(self) -> None:
        self.flushes += 1

    async def partitions_for(self, topic: str) -> None:
        raise TimeoutException("never heard of it")

    def explain(self, topic: str, partition: int) -> str:
        return f"{topic}-{partition}: all is well"

    def health(self) -> None:
        pass


def fail(result: ProduceResult) -> None:
    result.fail(failure(KafkaError("as planned")))


class Case:
    def __init__(
        self, plan: WorkPlan, *, end: Callable[[ProduceResult], object] = fail, after: float = 0.1, **config: Any
    ) -> None:
        self.world = World()
        loop = self.world.loop
        scenario = History(rates={"late": 0.1}, **config).scenario
        self.producer = FakeProducer(loop, end, after)
        self.ledger = Ledger(loop.time, Trace())
        self.violations = Violations(Trace(), slack=0.05)
        real: Any = self.producer
        producer: KafkaProducer = real
        self.work = Work(scenario, plan, producer, self.ledger, self.violations, loop, Random(0))

    def run(self) -> set[str]:
        """The promises that were broken."""

        async def work() -> None:
            await self.work.run()
            await asyncio.sleep(1000)

        self.world.run(work)
        return {violation.partition(": ")[0] for violation in self.violations.found}


@pytest.mark.parametrize("enqueues", [False, True])
def test_records_are_of_every_kind(enqueues: bool) -> None:
    case = Case(replace(PLAN, enqueues=enqueues))
    assert case.run() == set()
    records = case.producer.records
    assert len(case.ledger.entries) == len(records) >= PLAN.records  # callbacks send, too
    assert {record.partition for record in records} >= {None, 0, 1}
    assert None in {record.key for record in records}
    assert None in {record.value for record in records}
    assert {record.timestamp_ms for record in records} > {None}
    assert {len(record.headers) for record in records} == {1, 2}
    assert max(len(record.value or b"") for record in records) > 1000
    assert all(entry.settled() for entry in case.ledger.entries)


def test_many_at_once() -> None:
    case = Case(replace(PLAN, records=20, bulk=1.0))
    assert case.run() == set()
    entries = case.ledger.entries
    assert len(entries) == len(case.producer.records) > 100
    assert [entry.delivered for entry in entries] == [entry.record.key is None for entry in entries]
    assert all(entry.delivered == entry.acknowledged() == (entry.failure() is None) for entry in entries)
    assert len({entry.bulk for entry in entries}) == 20
    assert 3 < case.producer.tables < 17


def test_columns_of_a_table_are_not_serialized() -> None:
    case = Case(replace(PLAN, records=20, bulk=1.0), value_serializer=turn_around)
    assert case.run() == set()
    assert {entry.as_it_is for entry in case.ledger.entries} == {True, False}
    assert len({entry.bulk for entry in case.ledger.entries if entry.as_it_is}) == case.producer.tables


def test_a_serializer_that_fails() -> None:
    case = Case(PLAN, value_serializer=turn_around)
    case.producer.serializes = True
    assert case.run() == set()
    failed = [entry for entry in case.ledger.entries if isinstance(entry.failure(), SerializationException)]
    assert failed
    assert all(entry.delivery is None for entry in failed)


def test_many_at_once_cancelled_or_refused() -> None:
    case = Case(replace(PLAN, records=20, bulk=1.0, cancels=1.0))
    assert case.run() == set()
    assert any(entry.cancelled for entry in case.ledger.entries)
    case = Case(replace(PLAN, records=5, bulk=1.0))
    case.producer.miscounts = 1
    assert case.run() == {"a bulk send accounts for every record"}


def test_waiting_cancelling_and_flushing_do_no_harm() -> None:
    case = Case(replace(PLAN, enqueues=True, waits=0.5, cancels=0.5))
    assert case.run() == set()
    assert any(entry.cancelled for entry in case.ledger.entries)
    assert any(entry.awaited for entry in case.ledger.entries)


def test_a_delivery_that_takes_too_long() -> None:
    assert Case(replace(PLAN, records=20, waits=1.0), after=7.0).run() == {"nothing takes longer than its time-out"}


def test_an_enqueue_that_takes_too_long() -> None:
    assert Case(replace(PLAN, records=20, enqueues=True), after=2.0).run() == {"nothing takes longer than its time-out"}


def test_a_flush_that_returns_too_early() -> None:
    case = Case(replace(PLAN, flushes=1.0))
    assert case.run() == {"flush returns when all before it has ended"}
    assert case.producer.flushes > 100


def test_the_work_ends_when_the_producer_is_closed() -> None:
    case = Case(PLAN)
    case.producer.closed_after = 5
    assert case.run() == set()
    assert isinstance(case.ledger.entries[-1].failure(), IllegalStateException)
    assert len(case.producer.records) == 5


def test_awaiting_a_record_gives_the_outcome_that_everybody_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    async def another_outcome(delivery: Delivery) -> None:
        await asyncio.sleep(1)
        raise failure(KafkaError("something else"))

    monkeypatch.setattr("aioproducer.testing.simulation.users.workload._outcome", another_outcome)
    assert "awaiting a record gives its outcome" in Case(replace(PLAN, records=20, waits=1.0)).run()


def test_explain_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeProducer, "explain", lambda *args: "")
    assert Case(PLAN).run() == {"explain gives a reason"}
