from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioproducer.errors import (
    BufferExhaustedException,
    DeliveryError,
    InvalidTopicException,
    KafkaError,
    Outcome,
    PartitionerException,
    TimeoutException,
    TopicAuthorizationException,
)
from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.batches.producer_batch import BATCH_COST, OPEN_RECORD_COST
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.diagnosis.failure_log import FailureLog
from aioproducer.producer.parking.parked_record import PARKED_COST, ParkedRecord
from aioproducer.producer.parking.parking_lot import TRIAL
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.timing.time_slice import TIME_SLICE, TimeSlice
from aioproducer.types import LedgerEntry, ProducerRecord
from tests.producer.simulations.standing_loop import Accumulation, Future, waiting

FOR_ONE: Final = 1000 + PARKED_COST
"""Bytes of parked.memory that have room for one record of 800 bytes, and for no second one."""


class Parking(Accumulation):
    """An accumulator with its parking lot, and ``send`` and ``enqueue`` as the producer does them."""

    def __init__(self, *, capacity: int = 10**6, max_block: float = 60.0, **more: Any) -> None:
        super().__init__(**more)
        self.max_block = max_block
        self.failures = FailureLog()
        self.metrics = ProducerMetrics()
        self.missed: list[KafkaError] = []
        """The errors of records that failed or were withdrawn."""
        self.on_wake: Callable[[], object] = lambda: None
        self.lot = self.parking_lot(
            capacity, self.failures, self.metrics, wake=lambda: self.on_wake(), on_failed=self.missed.append
        )
        self.lot.open()
        self.turn = TimeSlice(self.loop)

    def send(self, topic: str = "t", value: bytes = b"v", *, enqueue: bool = False, **more: Any) -> Any:
        """The delivery, or the record as it is parked if it is one of ``enqueue``."""
        delivery = self.append(topic, value, **more)
        if delivery is not None:
            return delivery
        record = self.park(topic, value, condition=object() if enqueue else None, **more)
        return record if enqueue else record.delivery()

    def park(self, topic: str, value: bytes, *, condition: object = None, **more: Any) -> ParkedRecord:
        key, headers = more.get("key"), more.get("headers")
        record = ParkedRecord(
            self.accumulator.audience,
            ProducerRecord(topic, value, key, more.get("partition"), more.get("timestamp_ms"), headers),
            self.accumulator.record_size(value, key, headers),
            now=self.loop.now,
            max_block=self.max_block,
            condition=condition,
        )
        self.lot.park(record)
        return record

    def learn(self, topic: str, partitions: int) -> None:
        """Metadata arrives."""
        self.add_topic(topic, partitions)
        self.lot.metadata_arrived(topic)
        self.lot.place()

    def finish(self, topic: str = "t", partition: int = 0) -> None:
        """The oldest batch of the partition ends, and its memory comes back."""
        queue = self.accumulator.topics[topic].queues[partition]
        self.accumulator.close_batch(queue)
        self.pool.deallocate(queue.batches.popleft().allocated)
        self.lot.place()

    def pass_time(self, seconds: float) -> None:
        self.loop.now += seconds
        self.lot.expire(self.loop.now, lambda topic, since: TimeoutException(f"nobody knows {topic} since {since}"))

    def values(self, topic: str = "t", partition: int = 0) -> list[Any]:
        """What was appended to the partition, over all its batches."""
        found: list[Any] = []
        for batch in self.opened:
            if (batch.result.topic, batch.result.partition) != (topic, partition):
                continue
            records = batch.records if batch.buffer is None else batch.buffer.records.freeze()
            header = encode_batch_header(
                records, count=batch.count, base_timestamp=batch.base_timestamp, max_timestamp=batch.max_timestamp
            )
            found += [record.value for record in RecordBatch(header + records).records()]
        return found


# Waiting for metadata


def test_records_wait_for_their_topic_and_go_in_order() -> None:
    here = Parking()
    deliveries = [here.send("t", b"%d" % number, partition=0) for number in range(5)]
    assert not any(delivery.done() for delivery in deliveries)
    assert here.lot.bytes > 0
    here.learn("other", 1)
    assert here.opened == []
    here.learn("t", 1)
    assert here.values() == [b"0", b"1", b"2", b"3", b"4"]
    assert here.lot.bytes == len(here.lot) == 0
    (batch,) = here.opened
    batch.freeze()
    batch.succeed(70, -1)
    assert [delivery.result().offset for delivery in deliveries] == [70, 71, 72, 73, 74]


def test_a_topic_without_partitions_is_not_known_yet() -> None:
    here = Parking()
    here.send()
    here.learn("t", 0)
    assert len(here.lot) == 1
    here.learn("t", 1)
    assert here.values() == [b"v"]


def test_a_partition_that_does_not_exist_yet_is_waited_for_and_holds_nobody_up() -> None:
    here = Parking()
    here.learn("t", 2)
    here.send("t", b"for 4", partition=4)
    here.send("t", b"for 3", partition=3)
    here.send("t", b"for 1", partition=1)
    assert here.values("t", 1) == [b"for 1"]
    here.learn("t", 4)
    here.send("t", b"for 3, too", partition=3)
    assert here.values("t", 3) == [b"for 3", b"for 3, too"]
    assert len(here.lot) == 1
    here.learn("t", 5)
    assert here.values("t", 4) == [b"for 4"]
    assert len(here.lot) == 0


def test_records_that_waited_for_metadata_precede_later_waits_for_memory() -> None:
    here = Parking(memory=2600, batch_size=2600)
    here.learn("t", 1)
    here.send("late", b"1")
    here.send("t", bytes(900))
    here.send("t", bytes(500))
    here.send("late", b"2")
    here.learn("late", 1)
    here.send("late", b"3")
    assert [record.topic for record in here.lot.records()] == ["late", "t", "late", "late"]
    assert list(here.lot.memory) == here.lot.records()
    here.finish()
    assert here.values("late") == [b"1"]
    here.finish("late")
    assert here.values("t")[1:] == [bytes(500)]
    here.finish()
    assert here.values("late") == [b"1", b"2", b"3"]


def test_a_topic_recreated_with_fewer_partitions_releases_others_and_keeps_waiters() -> None:
    here = Parking(memory=2600, batch_size=2600)
    here.learn("t", 3)
    here.learn("other", 1)
    here.send("other", bytes(900))
    waiting = [here.send("t", b"1", partition=2), here.send("other", b"2"), here.send("t", b"3", partition=2)]
    del here.accumulator.topics["t"]
    here.learn("t", 2)
    assert here.values("other")[1:] == [b"2"]
    assert [record.value for record in here.lot.metadata["t"]] == [b"1", b"3"]
    here.finish("other")
    here.learn("t", 3)
    assert here.values("t", 2) == [b"1", b"3"]
    assert not any(delivery.done() for delivery in waiting)


class TestChoosingAgain:
    """A topic is created anew with fewer partitions, and the user's partitioner has to choose again for who waits."""

    def waiting(self, *chosen: int | Exception | None) -> tuple[Parking, list[ParkedRecord]]:
        """Records 1 and 2 wait for memory; the partitioner chose partition 2 for the first, and then as it is told."""
        here = Parking(memory=2600, batch_size=2600)
        here.learn("t", 3)
        here.send("t", bytes(900), partition=1)
        again = iter(chosen)

        def choose() -> int | None:
            choice = next(again)
            if isinstance(choice, Exception):
                raise choice
            return choice

        records = [here.park("t", b"1", partition=2), here.park("t", b"2", partition=0)]
        records[0].choose = choose
        del here.accumulator.topics["t"]
        here.add_topic("t", 1)
        return here, records

    def finish(self, here: Parking) -> None:
        here.pool.deallocate(here.opened[0].allocated)
        here.lot.place()

    def test_a_record_keeps_its_turn(self) -> None:
        here, _ = self.waiting(0)
        self.finish(here)
        assert here.values("t", 0) == [b"1", b"2"]

    @pytest.mark.parametrize("nowhere", [None, 2])
    def test_a_record_without_a_partition_waits_for_metadata(self, nowhere: int | None) -> None:
        here, _ = self.waiting(nowhere, 1)
        self.finish(here)
        assert here.values("t", 0) == [b"2"]
        assert [record.value for record in here.lot.metadata["t"]] == [b"1"]

    def test_an_exception_of_the_partitioner_fails_the_record(self) -> None:
        here, (first, _) = self.waiting(PartitionerException("cannot"))
        self.finish(here)
        assert isinstance(first.result.raised(0), PartitionerException)
        assert here.values("t", 0) == [b"2"]
        assert here.lot.bytes == len(here.lot) == 0

    def test_the_partitioner_may_send_a_record_itself(self) -> None:
        here, (first, _) = self.waiting()

        def choose() -> int:
            here.park("t", b"3", partition=0)
            here.lot.place()  # as whoever parks a record does
            return 0

        first.choose = choose
        self.finish(here)
        assert here.values("t", 0) == [b"1", b"2", b"3"]

    def test_the_record_may_be_withdrawn_meanwhile(self) -> None:
        here, (first, _) = self.waiting()

        def choose() -> int:
            here.lot.withdraw(first)
            return 0

        first.choose = choose
        self.finish(here)
        assert here.values("t", 0) == [b"2"]
        assert here.lot.bytes == len(here.lot) == 0


def test_a_topic_that_will_never_be_known_fails_its_records_alone() -> None:
    here = Parking()
    bad, enqueued, good = here.send("bad topic"), here.send("bad topic", enqueue=True), here.send("good")
    here.lot.refuse_topic("bad topic", InvalidTopicException("no such name"))
    here.lot.refuse_topic("good topic", InvalidTopicException("nobody waits"))
    assert not bad.done()
    assert here.lot.next_deadline() == 0
    here.pass_time(0)
    assert here.lot.next_deadline() == here.lot.records()[0].deadline
    assert isinstance(bad.exception(), InvalidTopicException)
    assert bad.outcome is Outcome.NOT_SENT
    assert bad.exception().topic_partition == ("bad topic", -1)
    assert isinstance(enqueued.result.raised(0), InvalidTopicException)
    assert list(here.lot.settled) == [enqueued]
    assert not good.done()
    assert [record.topic for record in here.lot.records()] == ["good"]


# Waiting for memory


def test_a_newcomer_queues_behind_waiting_records_even_if_it_would_fit() -> None:
    here = Parking(memory=5200, batch_size=1000)
    here.learn("t", 2)
    here.send("t", bytes(1000), partition=0)
    large = here.send("t", bytes(1000), partition=0)
    small = [here.send("t", b"small", partition=1) for _ in range(3)]
    assert here.values("t", 1) == []
    assert len(here.lot) == 4
    here.finish()
    assert here.values("t", 0) == [bytes(1000)] * 2
    assert here.values("t", 1) == [b"small"] * 3
    assert not large.done()
    assert not any(delivery.done() for delivery in small)
    assert not here.accumulator.detour
    here.send("t", b"newcomer", partition=1)
    assert here.values("t", 1) == [b"small"] * 3 + [b"newcomer"]


def test_send_and_enqueue_wait_in_one_line() -> None:
    here = Parking(memory=2600, batch_size=2600)
    here.learn("t", 1)
    here.send("t", bytes(900))
    waiting = [here.send("t", b"%d" % number, enqueue=number % 2 == 1) for number in range(6)]
    here.finish()
    assert here.values("t")[1:] == [b"%d" % number for number in range(6)]
    assert list(here.lot.settled) == waiting[1::2]
    assert here.lot.bytes == 0


def test_the_next_one_goes_when_the_first_in_line_is_withdrawn() -> None:
    here = Parking(memory=5200, batch_size=1000)
    here.learn("t", 2)
    here.send("t", bytes(1000), partition=0)
    large = here.send("t", bytes(1000), partition=0, enqueue=True)
    small = here.send("t", b"small", partition=1, enqueue=True)
    told: list[bool] = []
    here.on_wake = lambda: told.append(small.waiting())
    here.lot.withdraw(large)
    assert told == [False]  # it is placed, and can be notified
    assert here.values("t", 1) == [b"small"]
    assert not small.waiting()
    assert list(here.lot.settled) == [large, small]
    assert not here.accumulator.detour


def test_the_next_one_goes_when_the_first_in_line_has_waited_too_long() -> None:
    here = Parking(memory=5200, batch_size=1000, max_block=10)
    here.learn("t", 2)
    here.send("t", bytes(1000), partition=0)
    large = here.send("t", bytes(1000), partition=0)
    here.pass_time(9)
    small = here.send("t", b"small", partition=1)
    here.pass_time(1)
    assert isinstance(large.exception(), BufferExhaustedException)
    assert not small.done()
    assert here.values("t", 1) == [b"small"]


def test_memory_that_came_back_unseen_is_given_out_with_the_next_look_at_deadlines() -> None:
    here = Parking(memory=2600, batch_size=2600)
    here.learn("t", 1)
    here.send("t", bytes(900))
    here.send("t", bytes(500))
    here.pool.deallocate(here.opened[0].allocated)
    here.pass_time(0)
    assert len(here.lot) == 0


def test_nobody_overtakes_between_the_news_of_a_topic_and_the_placing() -> None:
    here = Parking()
    here.learn("t", 1)
    here.send("late", b"first")
    here.add_topic("late", 1)
    here.lot.metadata_arrived("late")
    here.send("late", b"second")
    here.lot.place()
    assert here.values("late") == [b"first", b"second"]


def test_a_placed_record_is_not_held_by_its_delivery() -> None:
    here = Parking()
    record = here.send(enqueue=True)
    here.learn("t", 1)
    assert record.result.lot is None


# Bounds


def test_a_lot_may_be_filled_to_the_last_byte() -> None:
    here = Parking()
    here.lot.capacity = 2 * (here.accumulator.record_size(b"v", None, None) + PARKED_COST)
    sent = [here.send() for _ in range(3)]
    here.loop.run()
    assert [delivery.done() for delivery in sent] == [False, False, True]
    assert here.metrics.snapshot(here.loop.now)["record-error-total"] == 1


def test_a_full_lot_fails_a_record_that_nobody_awaits() -> None:
    here = Parking(capacity=FOR_ONE)
    first = here.send("t", bytes(800))
    second = here.send("t", bytes(800))
    here.loop.run()
    assert not first.done()
    assert isinstance(second.exception(), BufferExhaustedException)
    assert second.outcome is Outcome.NOT_SENT
    with pytest.raises(BufferExhaustedException, match=rf"{FOR_ONE}: await send\(\)"):
        second.result()
    assert [record.result for record in here.lot.records()] == [first.place()[0]]
    assert not here.send("t", b"small").done()


def test_enqueue_is_bounded_by_its_callers_alone() -> None:
    here = Parking(capacity=FOR_ONE)
    waiting = [here.send("t", bytes(800), enqueue=True) for _ in range(5)]
    assert all(record.waiting() for record in waiting)
    assert here.lot.bytes == 0
    sent = here.send("t", bytes(800))
    here.loop.run()
    assert not sent.done()


def test_nothing_waits_longer_than_it_may() -> None:
    here = Parking(max_block=60)
    first = here.send("t", b"1")
    here.pass_time(30)
    second = here.send("t", b"2", enqueue=True)
    assert here.lot.next_deadline() == 160
    here.pass_time(29.999)
    assert not first.done()
    here.pass_time(0.001)
    with pytest.raises(TimeoutException, match="nobody knows t since 100"):
        first.result()
    assert here.lot.next_deadline() == 190
    here.pass_time(30)
    assert isinstance(second.result.raised(0), TimeoutException)
    assert list(here.lot.settled) == [second]
    assert here.lot.next_deadline() is None
    assert here.lot.bytes == len(here.lot) == 0


@pytest.mark.parametrize("kind", ["metadata", "memory"])
def test_somebody_else_has_a_turn_while_many_records_expire(kind: str) -> None:
    here = Parking(memory=2600, batch_size=2600, max_block=5)
    if kind == "memory":
        here.learn("t", 1)
        here.send("t", bytes(900))
    waiting = [here.send("t", bytes(1500)) for _ in range(3)]
    here.loop.tick = TIME_SLICE  # each look at the clock
    here.pass_time(6)
    for done in (1, 2, 3):
        assert [delivery.done() for delivery in waiting] == [number < done for number in range(3)]
        due = here.lot.next_deadline()
        assert due is None if done == 3 else due is not None and due <= here.loop.now
        here.pass_time(0)
    assert not here.lot.metadata


def test_the_time_waited_for_metadata_counts_for_memory_too() -> None:
    here = Parking(max_block=60, memory=2600, batch_size=2600)
    here.learn("full", 1)
    here.send("full", bytes(900))
    record = here.send("t")
    here.pass_time(40)
    here.learn("t", 1)
    assert list(here.lot.memory) == here.lot.records()
    here.pass_time(20)
    with pytest.raises(BufferExhaustedException, match=r"\(60000 ms; .*\): \d{4} of buffer\.memory=2600 b") as raised:
        record.result()
    ledger = raised.value.ledger
    assert ledger == (LedgerEntry("no metadata", 40, 1), LedgerEntry("no memory", 20, 1))


def test_memory_time_outs_have_their_own_metric() -> None:
    here = Parking(max_block=60, memory=2600, batch_size=2600)
    here.learn("full", 1)
    here.send("full", bytes(900))
    here.send("full", bytes(200), enqueue=True)
    here.send("unknown")
    here.pass_time(60)
    found = here.metrics.snapshot(here.loop.now)
    assert (found["record-error-total"], found["buffer-exhausted-total"]) == (2, 1)
    assert found["bufferpool-wait-time-ns-total"] == found["metadata-wait-time-ns-total"] == 60e9
    assert found["bufferpool-wait-ratio"] == 1.0
    here.pass_time(120)
    later = here.metrics.snapshot(here.loop.now)
    assert (later["bufferpool-wait-ratio"], later["bufferpool-wait-time-ns-total"]) == (0.0, 60e9)


def test_a_partition_that_never_came_is_named() -> None:
    here = Parking(max_block=1)
    here.learn("t", 3)
    record = here.send("t", partition=7)
    here.pass_time(1)
    with pytest.raises(TimeoutException, match=r"partition 7 of topic 't' did not exist .* has 3 partitions") as raised:
        record.result()
    assert raised.value.ledger == (LedgerEntry("no such partition", 1, 1),)
    assert record.exception().topic_partition == ("t", 7)


def test_shut_sends_everybody_to_the_lot() -> None:
    here = Parking()
    here.learn("t", 1)
    here.lot.shut()
    assert here.append() is None
    here.lot.open()
    assert here.append() is not None


def test_failing_all_leaves_nothing() -> None:
    here = Parking(memory=2600, batch_size=2600)
    here.learn("t", 1)
    here.send("t", bytes(900))
    parked = [here.send("t", bytes(50)), here.send("unknown", b"metadata"), here.send("t", partition=9)]
    enqueued = here.send("unknown", enqueue=True)
    here.lot.shut()
    here.lot.fail_all(KafkaError("closed"), aborted=True)
    assert [delivery.outcome for delivery in parked] == [Outcome.NOT_SENT] * 3
    assert "aborted" in repr(parked[0])
    assert not enqueued.waiting()
    assert list(here.lot.settled) == [enqueued]
    assert here.lot.bytes == len(here.lot) == 0
    assert not here.lot.memory
    assert not here.lot.metadata
    assert here.metrics.snapshot(here.loop.now)["record-error-total"] == 4
    assert here.accumulator.detour


def test_others_have_a_turn_while_all_that_waits_fails() -> None:
    here = Parking(memory=2600, batch_size=2600)
    here.learn("t", 1)
    here.send("t", bytes(900))
    parked = [here.send("t", bytes(50)), here.send("unknown"), here.send("t", partition=9)]
    enqueued = here.send("unknown", enqueue=True)
    here.lot.shut()
    here.loop.tick = TIME_SLICE  # each look at the clock
    here.lot.fail_in_turns(KafkaError("stop"))
    assert here.lot.fail_more()
    here.finish()  # nothing is placed
    here.lot.fail_in_turns(KafkaError("too late"), aborted=True)
    assert here.lot.fail_more()
    here.lot.open()
    young = here.send("unknown")
    assert here.lot.fail_more()
    assert here.lot.fail_more()
    assert here.lot.failing is not None
    assert not here.lot.fail_more()
    assert here.lot.failing is None
    assert [str(delivery.exception()) for delivery in parked] == ["stop"] * 3
    assert ["aborted" in repr(delivery) for delivery in parked] == [False, True, True]
    assert not enqueued.waiting()
    assert [young.place()[0]] == [record.result for record in here.lot.records()]
    here.learn("unknown", 1)
    assert here.values("unknown") == [b"v"]


def test_all_may_fail_at_once_while_they_fail_in_turns() -> None:
    here = Parking()
    deliveries = [here.send() for _ in range(3)]
    deliveries[0].add_done_callback(lambda _: here.lot.fail_all(KafkaError("at once")))
    here.lot.fail_in_turns(KafkaError("stop"))
    assert not here.lot.fail_more()
    assert [str(delivery.exception()) for delivery in deliveries] == ["stop", "at once", "at once"]


# Who cares


def test_a_record_that_its_last_waiter_leaves_is_withdrawn() -> None:
    here = Parking()
    delivery, other = here.send("t", b"withdrawn"), here.send("t", b"wanted")
    future: Future = next(delivery.__await__())
    future.cancel()
    here.loop.run()
    assert delivery.outcome is Outcome.NOT_SENT
    with pytest.raises(DeliveryError, match="withdrawn"):
        delivery.result()
    here.learn("t", 1)
    assert here.values() == [b"wanted"]
    assert not other.done()


def test_a_withdrawn_record_fails_its_transaction() -> None:
    here = Parking()
    here.lot.withdraw(here.send("t", b"withdrawn", enqueue=True))
    (error,) = here.missed
    assert "withdrawn while it waited" in str(error)


def test_a_record_that_is_placed_is_not_withdrawn() -> None:
    here = Parking()
    delivery, enqueued = here.send("t", b"1"), here.send("t", b"2", enqueue=True)
    future: Future = next(delivery.__await__())
    here.learn("t", 1)
    future.cancel()
    here.loop.run()
    here.lot.withdraw(enqueued)
    assert here.values() == [b"1", b"2"]
    assert not delivery.done()


def test_an_unobserved_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    here = Parking(max_block=1, capacity=FOR_ONE)
    with caplog.at_level(logging.ERROR):
        here.send("unnoticed")
        next(here.send("awaited").__await__())
        here.send("enqueued", enqueue=True)
        here.send("too much", bytes(900))
        here.loop.run()
        here.pass_time(1)
        here.failures.write(here.loop.now)
    assert [line.getMessage().split(":")[0] for line in caplog.records] == ["too much", "unnoticed"]


@pytest.mark.parametrize("aborted", [False, True])
def test_all_that_waits_fails_and_is_aborted_if_that_is_said(*, aborted: bool) -> None:
    here = Parking()
    delivery = here.send("t", partition=0)
    if aborted:
        here.lot.fail_all(KafkaError("stop"), aborted=True)
    else:
        here.lot.fail_all(KafkaError("stop"))
    assert repr(delivery) == f"<Delivery t-0 {'aborted' if aborted else 'failed'}>"


@pytest.mark.parametrize("end", ["learn", "expire", "refuse_topic", "fail_all", "withdraw", "adopt"])
def test_nobody_waits_for_metadata_any_more_whatever_the_end(end: str) -> None:
    here = Parking(max_block=5, capacity=0)
    record = here.send("t", enqueue=True)
    here.loop.now += 2
    if end == "learn":
        here.learn("t", 1)
    elif end == "expire":
        here.pass_time(3)
    elif end == "refuse_topic":
        here.lot.refuse_topic("t", InvalidTopicException("no"))
        here.pass_time(0)
    elif end == "fail_all":
        here.lot.fail_all(KafkaError("stop"))
    elif end == "withdraw":
        here.lot.withdraw(record)
    else:
        here.lot.adopt(record)
    ended = here.loop.now
    assert not record.waiting()
    assert here.metrics.metadata_wait.total_ns(ended + 100) == pytest.approx((ended - 100) * 1e9)


def test_a_record_that_is_adopted_is_one_of_send(caplog: pytest.LogCaptureFixture) -> None:
    here = Parking(max_block=1, capacity=1500 + PARKED_COST)
    first, second, third = (here.send(topic, bytes(1000), enqueue=True) for topic in ("first", "second", "third"))
    here.lot.adopt(first)
    assert (here.lot.bytes, first.held) == (first.held, first.size + PARKED_COST)
    here.lot.adopt(second)  # there is no room for it
    assert isinstance(second.result.error, BufferExhaustedException)
    assert here.lot.records() == [first, third]
    here.pass_time(1)
    here.lot.adopt(third)  # it has failed
    assert list(here.lot.settled) == [third]
    assert here.lot.bytes == 0
    here.failures.write(here.loop.now)
    assert [line.split(":")[0] for line in caplog.messages] == ["second", "first", "third"]


def test_an_observed_end_is_not_logged_when_its_record_is_adopted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here = Parking(max_block=1)
    told, placed = here.send("told", enqueue=True), here.send("t", enqueue=True)
    here.learn("t", 1)
    here.pass_time(1)
    _ = told.result.raised(0)
    here.lot.adopt(told)
    here.lot.adopt(placed)
    here.failures.write(here.loop.now)
    assert caplog.messages == []


def test_a_withdrawn_record_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    here = Parking()
    delivery = here.send()
    with caplog.at_level(logging.DEBUG):
        next(delivery.__await__()).cancel()
        here.loop.run()
    assert delivery.done()
    assert caplog.records == []


def test_a_parked_record_is_written_as_it_was_checked() -> None:
    here = Parking()
    headers: list[Any] = [("name", b"value")]
    here.send(headers=headers)
    headers[0] = "something else"
    headers.append(5)
    here.learn("t", 1)
    assert here.values() == [b"v"]


# Who awaits


def test_a_record_that_somebody_awaits_takes_no_room() -> None:
    here = Parking(capacity=FOR_ONE)
    first, second = here.send("t", b"1"), here.send("t", b"2")
    tasks = waiting(second), waiting(first)
    assert here.lot.bytes == 0
    here.loop.run()
    assert not any(task.done() for task in tasks)
    here.learn("t", 1)
    assert here.values() == [b"1", b"2"]
    assert here.lot.bytes == len(here.lot) == 0


def test_a_record_on_trial_keeps_its_turn() -> None:
    here = Parking(capacity=FOR_ONE)
    _ = here.send("t", b"1")
    second = here.send("t", b"2")
    _ = here.send("t", b"3", enqueue=True)
    here.learn("t", 1)
    here.loop.run()
    assert here.values() == [b"1", b"2", b"3"]
    assert not second.done()


@pytest.mark.parametrize("after", range(TRIAL + 1))
def test_a_trial_lasts_for_some_turns_of_the_loop(after: int) -> None:
    here = Parking(capacity=0)
    delivery = here.send()
    for _ in range(after):
        here.loop.turn()
    if after < TRIAL:
        task = waiting(delivery)
        here.loop.run()
        assert not task.done()
    else:
        assert isinstance(delivery.exception(), BufferExhaustedException)
    assert len(here.lot) == (after < TRIAL)


def test_each_record_has_its_own_trial() -> None:
    here = Parking(capacity=0)
    first = here.send()
    here.loop.turn()
    second = here.send()
    for _ in range(TRIAL - 1):
        here.loop.turn()
    assert (first.done(), second.done()) == (True, False)
    here.loop.turn()
    assert second.done()
    third = here.send()  # nothing was counted any more
    here.loop.turn()
    assert not third.done()


def test_others_have_a_turn_while_many_trials_end() -> None:
    here = Parking(capacity=0)
    deliveries = [here.send() for _ in range(3)]
    for _ in range(TRIAL - 1):
        here.loop.turn()
    here.loop.tick = TIME_SLICE  # each look at the clock
    for done in (1, 2, 3):
        here.loop.turn()
        assert [delivery.done() for delivery in deliveries] == [number < done for number in range(3)]
    assert here.loop.idle()


def test_room_that_comes_in_time_is_for_the_oldest_on_trial() -> None:
    here = Parking(capacity=FOR_ONE)
    first, second, third = (here.send("t", bytes(800)) for _ in range(3))
    task = waiting(first)
    here.loop.run()
    assert [one.done() for one in (first, second, third)] == [False, False, True]
    assert not task.done()
    assert here.lot.bytes == here.lot.records()[1].held


def test_a_record_whose_delivery_is_dropped_fails_before_another_is_parked() -> None:
    """However many records are sent in one turn of the loop, no more than one of them has no room."""
    here = Parking(capacity=0)
    for _ in range(100):
        _ = here.send("t", bytes(1000))
        assert len(here.lot) == 1
    here.loop.run()
    assert len(here.lot) == 0
    assert here.metrics.snapshot(here.loop.now)["record-error-total"] == 100


def test_what_is_sent_by_a_callback_of_a_record_that_ends_meanwhile_goes_behind_the_newcomer() -> None:
    here = Parking(capacity=0)
    here.loop.tick = TIME_SLICE  # each look at the clock
    kept: list[Delivery] = []
    first, second = here.send("t", b"0"), here.send("t", b"1")
    second.add_done_callback(lambda _: kept.append(here.send("t", b"3")))
    while not first.done():
        here.loop.turn()
    assert not second.done()
    kept.append(here.send("t", b"2"))
    assert second.done()
    assert [record.value for record in here.lot.records()] == [b"2", b"3"]


def test_all_may_fail_while_a_trial_ends() -> None:
    here = Parking(capacity=0)
    deliveries = [here.send() for _ in range(3)]
    deliveries[0].add_done_callback(lambda _: here.lot.fail_all(KafkaError("stop")))
    here.loop.run()
    assert [type(delivery.exception()).__name__ for delivery in deliveries] == [
        "BufferExhaustedException",
        "KafkaError",
        "KafkaError",
    ]
    assert here.loop.idle()


def test_others_have_a_turn_while_many_deliveries_are_dropped() -> None:
    here = Parking(capacity=0)
    deliveries = [here.send() for _ in range(5)]
    deliveries.clear()
    assert len(here.lot) == 5
    _ = here.send()
    assert len(here.lot) == 4  # one more, and two less
    here.loop.tick = TIME_SLICE  # each look at the clock
    for left in (3, 2, 1, 0):
        here.loop.turn()
        assert len(here.lot) == left
    here.loop.turn()
    assert here.loop.idle()


def test_a_delivery_that_is_dropped_while_somebody_awaits_it_changes_nothing() -> None:
    here = Parking(capacity=0)
    task = waiting(here.send("t", b"1"))
    _ = here.send("t", b"2")
    here.learn("t", 1)
    here.loop.run()
    assert here.values() == [b"1", b"2"]
    assert not task.done()


def test_a_delivery_may_be_dropped_in_any_thread_and_in_the_middle_of_anything() -> None:
    here = Parking(capacity=0)
    dropped = [here.send()]
    record = here.lot.records()[0]
    thread = threading.Thread(target=dropped.clear)
    thread.start()
    thread.join()
    assert record.waiting()
    here.loop.turn()
    assert not record.waiting()


def test_a_record_with_a_callback_is_not_withdrawn_but_needs_room_when_its_task_is_cancelled() -> None:
    here = Parking(capacity=FOR_ONE)
    first, second = here.send("t", bytes(800)), here.send("t", bytes(800))
    for delivery in (first, second):
        delivery.add_done_callback(lambda _: None)
        waiting(delivery).cancel()
    here.loop.run()
    assert not first.done()
    assert isinstance(second.exception(), BufferExhaustedException)


def test_a_record_that_wait_all_waits_for_is_not_withdrawn() -> None:
    here = Parking(capacity=FOR_ONE)
    delivery = here.send("t", bytes(800))
    result = delivery.place()[0]
    here.lot.awaited(result)
    task = waiting(delivery)
    task.cancel()
    here.loop.run()
    assert here.lot.bytes == 0
    here.lot.released(result)
    assert here.lot.bytes == here.lot.records()[0].held
    assert not delivery.done()


def test_others_have_a_turn_while_many_records_are_placed() -> None:
    here = Parking()
    waits = [here.send("t", b"%d" % number) for number in range(3)]
    here.add_topic("t", 1)
    here.lot.metadata_arrived("t")
    woken: list[int] = []
    here.on_wake = lambda: woken.append(len(here.values()))
    here.loop.tick = TIME_SLICE  # each look at the clock
    here.lot.place()
    assert (here.values(), here.lot.paused) == ([b"0"], True)
    for _ in range(2):
        here.lot.place()
    assert here.values() == [b"0", b"1", b"2"]
    assert (here.lot.paused, here.accumulator.detour, woken) == (False, False, [1, 2])
    assert len(waits) == 3


def test_the_line_for_memory_empties_however_many_join_it_in_each_turn() -> None:
    here = Parking()
    sent = [here.send("t", b"%d" % number) for number in range(12)]
    here.add_topic("t", 1)
    here.lot.metadata_arrived("t")
    here.loop.tick = TIME_SLICE  # each look at the clock
    here.lot.place()  # one of them
    for left in (10, 9, 8):
        sent.append(here.send("t", b"%d" % len(sent)))  # joins it, and two leave
        assert len(here.lot) == left
    assert here.values() == [b"%d" % number for number in range(7)]


def test_records_on_trial_become_fewer_however_many_come_in_each_turn() -> None:
    here = Parking(capacity=0)
    here.loop.tick = TIME_SLICE  # each look at the clock
    kept = []
    for _ in range(20):
        kept += [here.send() for _ in range(10)]
        here.loop.turn()
        assert len(here.lot) <= 10 * (TRIAL + 1)


def test_nobody_is_left_to_be_placed_when_all_have_failed() -> None:
    here = Parking()
    _ = [here.send("t") for _ in range(3)]
    here.add_topic("t", 1)
    here.lot.metadata_arrived("t")
    here.loop.tick = TIME_SLICE
    here.lot.place()
    here.lot.fail_all(KafkaError("stop"))
    assert not here.lot.paused


# Callbacks that send


@pytest.mark.parametrize("end", ["expire", "refuse_topic", "fail_all", "withdraw"])
@pytest.mark.parametrize("max_block", [0, 5])
def test_a_callback_of_a_failing_record_may_send(end: str, max_block: int) -> None:
    here = Parking(capacity=6000, max_block=max_block, memory=2600, batch_size=2600)
    here.learn("known", 1)
    here.send("known", bytes(900))
    again: list[Delivery] = []

    def send_again(delivery: Delivery) -> None:
        assert isinstance(delivery.exception(), DeliveryError)
        again.append(here.send("t", b"again"))
        again.append(here.send("known", bytes(50)))

    first = [here.send("t", b"first"), here.send("t", b"first")]
    for delivery in first:
        delivery.add_done_callback(send_again)
    if end == "expire":
        here.pass_time(max_block)
    elif end == "refuse_topic":
        here.lot.refuse_topic("t", TopicAuthorizationException("no"))
        here.pass_time(0)
    elif end == "fail_all":
        here.lot.fail_all(KafkaError("stop"))
    else:
        for record in here.lot.records():
            here.lot.withdraw(record)
    assert all(delivery.done() for delivery in first)
    assert len(again) == 4
    assert not any(delivery.done() for delivery in again)
    assert [record.result for record in here.lot.records()] == [d.place()[0] for d in again if not d.done()]
    assert here.lot.bytes == sum(record.held for record in here.lot.records())


# Any course of things


class ParkingMachine(RuleBasedStateMachine):
    """Records come by ``send`` and ``enqueue``, topics and partitions appear, batches end, senders give up."""

    @initialize(memory=st.integers(600, 8000), capacity=st.integers(0, 12_000))
    def begin(self, memory: int, capacity: int) -> None:
        self.here = Parking(memory=memory, batch_size=200, max_request_size=600, capacity=capacity, max_block=10)
        self.count = 0
        # By number: the delivery, of enqueue the record, and when it has to be decided.
        self.sent: dict[int, Any] = {}
        self.deadlines: dict[int, float] = {}
        self.withdrawn: set[int] = set()
        self.refused: list[Delivery] = []
        self.tasks: dict[int, list[Future]] = defaultdict(list)
        """By number, the futures of those that await it."""
        self.enqueued: list[ParkedRecord] = []
        self.partitions = {"a": 0, "b": 0, "c": 0}
        self.most_partitions = dict(self.partitions)

    def _send(self, topic: str, partition: int | None, key: bytes | None, size: int, enqueue: bool) -> int:
        self.count += 1
        number = self.count
        value = b"%d:" % number + bytes(size)
        sent = self.here.send(topic, value, enqueue=enqueue, partition=partition, key=key)
        self.deadlines[number] = self.here.loop.now + 10
        if isinstance(sent, ParkedRecord):
            self.enqueued.append(sent)
            sent = sent.delivery()
        self.sent[number] = sent
        return number

    @rule(
        topic=st.sampled_from("abc"),
        partition=st.none() | st.integers(0, 3),
        key=st.none() | st.sampled_from([b"k1", b"k2"]),
        size=st.sampled_from([0, 20, 100, 400]),
        how=st.sampled_from(["send", "await", "enqueue"]),
        sends_again=st.booleans(),
    )
    def send(
        self, topic: str, partition: int | None, key: bytes | None, size: int, how: str, sends_again: bool
    ) -> None:
        number = self._send(topic, partition, key, size, how == "enqueue")
        delivery = self.sent[number]
        assert not delivery.done()
        if how == "await":
            self._await(number)
        elif sends_again:

            def callback(delivery: Delivery) -> None:
                if delivery.outcome is not None:
                    self._send(topic, partition, key, 0, False)

            delivery.add_done_callback(callback)

    def _await(self, number: int) -> None:
        self.tasks[number].append(next(self.sent[number].__await__()))

    def _of_send(self) -> list[int]:
        """Numbers of the records of ``send`` that wait."""
        numbers = {record.result: record.condition is None for record in self.here.lot.records()}
        return [number for number, delivery in self.sent.items() if numbers.get(delivery.place()[0])]

    @precondition(lambda self: self._of_send())
    @rule(data=st.data())
    def await_it(self, data: st.DataObject) -> None:
        self._await(data.draw(st.sampled_from(self._of_send())))

    def _awaited(self) -> list[int]:
        return [number for number in self._of_send() if self.tasks[number]]

    @precondition(lambda self: self._awaited())
    @rule(data=st.data())
    def cancel_all_tasks_of_one(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self._awaited()))
        delivery = self.sent[number]
        others = [(one, sent) for one, sent in self.sent.items() if one != number and not sent.done()]
        with_callbacks = delivery.place()[0].has_callbacks()
        for task in self.tasks.pop(number):
            task.cancel()
        self.here.loop.run()
        if not with_callbacks:
            assert delivery.outcome is Outcome.NOT_SENT
            self.withdrawn.add(number)
        for one, sent in others:
            # What was on trial may have failed in the turns of the loop, but nobody who is awaited.
            assert not sent.done() or not self.tasks[one]

    @precondition(lambda self: len(self.here.lot._trial) > 0)
    @rule()
    def turn(self) -> None:
        """Time enough for all trials to end."""
        self.here.loop.run()
        assert len(self.here.lot._trial) == 0

    @precondition(lambda self: len(self.here.lot._trial) > 0)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        lot = self.here.lot
        record = data.draw(st.sampled_from(list(lot._trial)))
        full = lot.bytes + record.held > lot.capacity
        lot.dropped(record.result)
        assert record.waiting()  # a finalizer may run in the middle of anything
        lot._decide_dropped()  # as the next record that is parked does
        assert record.waiting() != full

    @rule(topic=st.sampled_from("abc"), more=st.integers(1, 2))
    def learn(self, topic: str, more: int) -> None:
        self.partitions[topic] = min(4, self.partitions[topic] + more)
        self.here.learn(topic, self.partitions[topic])

    @precondition(lambda self: any(self.partitions.values()))
    @rule(data=st.data(), partitions=st.integers(1, 4))
    def make_anew(self, data: st.DataObject, partitions: int) -> None:
        """A topic is deleted and created again, perhaps with fewer partitions."""
        topic = data.draw(st.sampled_from([topic for topic in "abc" if self.partitions[topic]]))
        for queue in self.here.accumulator.topics[topic].queues:
            while queue.depth():
                self.here.accumulator.close_batch(queue)
                self.here.pool.deallocate(queue.batches.popleft().allocated)
        del self.here.accumulator.topics[topic]
        self.most_partitions[topic] = max(self.most_partitions[topic], self.partitions[topic])
        self.partitions[topic] = partitions
        self.here.learn(topic, partitions)

    def _queues(self) -> list[Any]:
        queues = [queue for topic in self.here.accumulator.topics.values() for queue in topic.queues]
        return [queue for queue in queues if queue.depth()]

    @precondition(lambda self: self._queues())
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        queue = data.draw(st.sampled_from(self._queues()))
        self.here.finish(queue.topic, queue.partition)

    @precondition(lambda self: len(self.here.lot) > 0)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        record = data.draw(st.sampled_from(self.here.lot.records()))
        self.withdrawn |= {number for number, sent in self.sent.items() if sent.place()[0] is record.result}
        self.here.lot.withdraw(record)
        assert not record.waiting()
        self.here.lot.withdraw(record)

    @precondition(lambda self: any(record.condition is not None for record in self.here.lot.records()))
    @rule(data=st.data())
    def adopt(self, data: st.DataObject) -> None:
        lot = self.here.lot
        record = data.draw(st.sampled_from([one for one in lot.records() if one.condition is not None]))
        fits = lot.bytes + record.held <= lot.capacity
        lot.adopt(record)
        self.enqueued.remove(record)
        assert record.waiting() == fits
        lot.adopt(record)

    @rule(seconds=st.sampled_from([1, 5, 10]))
    def pass_time(self, seconds: float) -> None:
        self.here.pass_time(seconds)
        assert all(delivery.done() for delivery in self.refused)

    @precondition(lambda self: any(not partitions for partitions in self.partitions.values()))
    @rule(data=st.data())
    def refuse_topic(self, data: st.DataObject) -> None:
        topic = data.draw(st.sampled_from([topic for topic in "abc" if not self.partitions[topic]]))
        self.refused += [Delivery(record.result, 0) for record in self.here.lot.records() if record.topic == topic]
        self.here.lot.refuse_topic(topic, InvalidTopicException("no"))
        assert topic not in self.here.lot.metadata

    @rule()
    def fail_all(self) -> None:
        waiting = [Delivery(record.result, 0) for record in self.here.lot.records()]
        self.here.lot.fail_all(KafkaError("all"))
        assert all(delivery.done() for delivery in waiting)

    @invariant()
    def the_time_of_waiting_is_measured_while_somebody_waits(self) -> None:
        lot, metrics, now = self.here.lot, self.here.metrics, self.here.loop.now
        for somebody, time in ((lot.memory, metrics.memory_wait), (lot.metadata, metrics.metadata_wait)):
            assert (time.total_ns(now + 1) > time.total_ns(now)) == bool(somebody)

    @invariant()
    def who_waits_has_a_reason(self) -> None:
        lot, topics = self.here.lot, self.here.accumulator.topics
        assert self.here.accumulator.detour == bool(lot.memory)
        refused = [refused.line for refused in lot._refused.values()]
        everybody = [*lot.memory, *(record for queue in (*lot.metadata.values(), *refused) for record in queue)]
        assert sorted(everybody, key=lambda record: record.number) == lot.records()
        assert lot.bytes == sum(record.held for record in lot.records() if record.charged)
        for record in lot.records():
            awaited = record.condition is not None or record.awaiters > 0
            assert awaited + record.charged + (record in lot._trial) == 1
        awaiters = {record.result: record.awaiters for record in lot.records()}
        for number, delivery in self.sent.items():
            tasks = sum(not task.done() for task in self.tasks[number])
            assert awaiters.get(delivery.place()[0], tasks) == tasks
        assert lot.bytes <= lot.capacity
        numbers = [record.number for record in lot.memory]
        assert numbers == sorted(numbers)
        if lot.memory:
            assert lot.memory.first().number == numbers[0]
            needed = lot.memory.first().size + OPEN_RECORD_COST + BATCH_COST
            assert self.here.pool.available < min(self.here.pool.total, needed)
        for topic, queue in lot.metadata.items():
            assert queue
            for record in queue:
                known = len(topics[topic].queues) if topic in topics else 0
                assert known == 0 or (record.partition is not None and record.partition >= known)

    @invariant()
    def everybody_is_in_one_place(self) -> None:
        lot = self.here.lot
        waiting = {id(record.result) for record in lot.records()}
        left = [record for record in self.enqueued if id(record.result) not in waiting]
        assert sorted(map(id, lot.settled)) == sorted(map(id, left))
        placed = defaultdict(list)
        for topic, partitions in self.partitions.items():
            for partition in range(max(partitions, self.most_partitions[topic])):
                for value in self.here.values(topic, partition):
                    placed[topic, partition].append(int(value.split(b":")[0]))
        for numbers in placed.values():
            assert numbers == sorted(numbers)
        everywhere = [number for numbers in placed.values() for number in numbers]
        assert len(everywhere) == len(set(everywhere))
        for number, delivery in self.sent.items():
            assert (number in everywhere) + (id(delivery.place()[0]) in waiting) + delivery.done() == 1
            if delivery.done():
                assert delivery.outcome is Outcome.NOT_SENT
                failure = delivery.exception()
                if isinstance(failure, BufferExhaustedException) and "nobody awaits" in str(failure):
                    assert not self.tasks[number]
                elif isinstance(failure, TimeoutException):
                    assert self.deadlines[number] <= self.here.loop.now
        assert not self.withdrawn & set(everywhere)
        for record in lot.records():
            assert record.deadline > self.here.loop.now or record.parked_at == self.here.loop.now


ParkingMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestParking = ParkingMachine.TestCase
