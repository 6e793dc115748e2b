"""The reasons for which a partition becomes ready, one at a time (``RecordAccumulator.ready``)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.diagnosis.value_history import ValueHistory
from aioproducer.producer.scheduling.pipeline import Pipeline
from aioproducer.producer.scheduling.readiness import why_waiting
from aioproducer.producer.scheduling.schedule import MOST_DUE, Schedule
from aioproducer.timing.loop_clock import LoopClock
from tests.producer.simulations.standing_loop import Loop, make_batch, waiting

LINGER = 5.0


class Scene:
    """A schedule, a partition, and when somebody was woken, or will be."""

    def __init__(self, linger: float = LINGER, pipeline: Pipeline | None = None) -> None:
        self.wakes = 0
        self.times: list[float] = []
        tick = LoopClock(Loop()).tick
        self.schedule = Schedule(linger, wake=self._wake, wake_at=self.times.append, tick=tick, pipeline=pipeline)
        self.queue = PartitionQueue("t", 0, None)
        self.queue.leader = 1

    def _wake(self) -> None:
        self.wakes += 1

    def open(self, created: float = 0.0) -> ProducerBatch:
        self.queue.open = batch = make_batch(Loop(), records=1, created=created)
        batch.result.present_audience().on_awaited = self._awaited
        self.schedule.opened(self.queue, batch)
        return batch

    def _awaited(self, result: ProduceResult) -> None:
        if self.queue.open is not None and self.queue.open.result is result:
            self.schedule.awaited(self.queue)

    def close(self) -> None:
        """The open batch is full."""
        assert self.queue.open is not None
        self.queue.batches.append(self.queue.open)
        self.queue.open, self.queue.due = None, False
        self.schedule.full(self.queue, 0.0)

    def drain(self) -> None:
        """All of it goes out."""
        self.queue.open, self.queue.due, self.queue.ready = None, False, False
        self.queue.batches.clear()
        self.schedule.ready.of(1).clear()

    def ready(self, now: float = 0.0) -> bool:
        self.wants_turn = self.schedule.take_due(now)
        return self.queue in self.schedule.ready.of(1) and why_waiting(self.queue, now, keep_order=False) is None


def test_a_new_batch_lingers_from_its_first_record_on() -> None:
    scene = Scene()
    scene.open(created=100.0)
    assert (scene.wakes, scene.times, scene.schedule.next()) == (0, [105.0], 105.0)
    assert not scene.ready(104.999)
    assert why_waiting(scene.queue, 104.999, keep_order=False) is Reason.LINGER
    assert scene.ready(105.0)
    assert (scene.wakes, scene.schedule.next()) == (1, None)


def test_on_a_clock_of_whole_milliseconds_it_is_ready_at_that_millisecond() -> None:
    """As uvloop's: 0.001 + 0.005 is more than 0.006, and nobody shall wait for the one after."""
    for created in range(1, 2000):
        scene = Scene(linger=0.005)
        scene.open(created / 1000)
        assert scene.ready((created + 5) / 1000)


def test_without_linger_it_is_ready_at_once() -> None:
    scene = Scene(linger=0.0)
    scene.open()
    assert scene.ready()
    assert scene.wakes == 1


def test_a_batch_of_batch_size_does_not_linger_and_stays_open() -> None:
    scene = Scene()
    batch = scene.open()
    assert not scene.ready(1.0)
    scene.schedule.reached(scene.queue, 1.0)
    assert scene.wakes == 1
    assert scene.ready(1.0)
    assert scene.queue.open is batch
    assert batch.ready_at == 1.0


@pytest.mark.parametrize("linger", [LINGER, 10.0**6])
def test_a_full_batch_is_ready_however_long_it_might_linger(linger: float) -> None:
    scene = Scene(linger)
    scene.open()
    assert not scene.ready()
    scene.close()
    assert scene.ready()
    assert scene.wakes == 1


def test_a_retry_is_ready_after_its_back_off() -> None:
    scene = Scene()
    batch = make_batch(Loop(), records=1)
    batch.drain_order, batch.retry_at = 1, 20.0
    scene.queue.batches.append(batch)
    scene.schedule.again(scene.queue, 20.0, now=10.0)
    assert scene.times == [20.0]
    assert not scene.ready(19.0)
    scene.queue.ready = False  # the drain lets go of what has to wait
    scene.schedule.ready.of(1).clear()
    assert not scene.ready(19.999)
    assert scene.ready(20.0)


def test_a_partition_behind_a_retried_batch_is_ready_at_once() -> None:
    scene = Scene()
    scene.queue.batches.append(make_batch(Loop(), records=1))
    scene.schedule.again(scene.queue, 10.0, now=10.0)
    assert scene.ready(10.0)
    assert scene.times == []


def test_a_partition_without_batches_is_not_ready() -> None:
    """Else the drain would look at thousands of them, one after another, behind the last that has something to send."""
    scene = Scene()
    scene.queue.history = ValueHistory((1, Reason.READY))
    scene.queue.in_flight = 1
    scene.schedule.again(scene.queue, 10.0, now=10.0)
    assert not scene.ready(10.0)
    assert scene.queue.history is not None
    scene.queue.in_flight = 0
    scene.schedule.again(scene.queue, 10.0, now=10.0)
    assert not scene.ready(10.0)
    assert scene.queue.history is None, "no batch is left to need it"


def test_a_partition_whose_batch_lingers_is_not_ready() -> None:
    scene = Scene()
    scene.open()
    scene.schedule.again(scene.queue, 0.0, now=0.0)
    assert list(scene.schedule.ready.of(1)) == []


def test_nothing_lingers_while_somebody_flushes() -> None:
    scene = Scene()
    scene.open()
    scene.schedule.flush_begun()
    assert scene.ready()
    scene.drain()
    scene.schedule.flush_begun()  # another one
    scene.schedule.flush_ended()
    scene.open()
    assert scene.ready(), "the second flush goes on"
    scene.drain()
    scene.schedule.flush_ended()
    scene.open()
    assert not scene.ready()


def test_nothing_lingers_while_somebody_waits_for_memory() -> None:
    scene = Scene()
    scene.open()
    scene.schedule.hurry(wanted=True)
    assert scene.ready(), "it holds memory"
    scene.drain()
    scene.open()
    assert scene.ready(), "opened while somebody waits"
    scene.drain()
    scene.schedule.hurry(wanted=False)
    scene.open()
    assert not scene.ready()
    scene.schedule.hurry(wanted=True)
    assert scene.ready(), "and again, when somebody else waits"


@pytest.mark.parametrize("flushing", [False, True])
def test_whoever_cannot_wait_for_lingers_goes_through_the_partitions_in_turns(flushing: bool) -> None:
    scene = Scene()
    queues = [PartitionQueue("t", number, None) for number in range(MOST_DUE + 1)]
    for queue in queues:
        scene.queue = queue
        queue.leader = 1
        scene.open()
    assert scene.schedule.next() == LINGER
    if flushing:
        scene.schedule.flush_begun()
    scene.schedule.hurry(wanted=not flushing)
    for due in (MOST_DUE, MOST_DUE + 1):
        assert scene.schedule.next() == 0.0, "the Sender comes back after a turn of the loop"
        scene.schedule.take_due(0.0)
        assert len(scene.schedule.ready.of(1)) == due
    assert scene.schedule.next() is None


@pytest.mark.parametrize("out", [Scene.close, Scene.drain])
def test_a_later_batch_has_its_own_time(out: Callable[[Scene], None]) -> None:
    scene = Scene()
    scene.open(created=100.0)
    out(scene)
    scene.drain()
    scene.open(created=103.0)
    assert scene.times == [105.0], "a partition has one deadline, not one per batch"
    assert not scene.ready(105.0)
    assert scene.schedule.next() == 108.0
    assert scene.ready(108.0)


# Awaited, with pipeline=auto


def lingering() -> tuple[Scene, ProducerBatch]:
    """A batch of one record that lingers as the pipeline says."""
    pipeline = Pipeline(LINGER, max_in_flight=5, batch_size=16384)
    pipeline.sent(1, 10, 1000, now=99.0)
    pipeline.sent(1, 10, 1000, now=100.0)
    pipeline.answered(1, 20.0)
    scene = Scene(pipeline=pipeline)
    batch = scene.open(created=100.5)
    assert not scene.ready(101.0)
    return scene, batch


def awaits(batch: ProducerBatch, index: int) -> None:
    _ = waiting(Delivery(batch.result, index))


def add(batch: ProducerBatch) -> None:
    _ = batch.append(0, None, b"", None)


def test_a_batch_does_not_linger_if_all_its_records_are_awaited() -> None:
    scene, batch = lingering()
    add(batch)
    awaits(batch, 0)
    awaits(batch, 1)
    assert scene.wakes == 1
    assert scene.ready(101.0)
    assert not scene.wants_turn


def test_an_awaited_batch_does_not_linger_if_a_turn_of_the_loop_adds_nothing() -> None:
    scene, batch = lingering()
    add(batch)
    awaits(batch, 0)
    assert not scene.ready(101.0)
    assert scene.wants_turn
    assert scene.ready(101.0)
    assert not scene.wants_turn


def test_an_awaited_batch_that_grows_lingers_until_somebody_else_awaits_a_record() -> None:
    scene, batch = lingering()
    add(batch)
    awaits(batch, 0)
    assert not scene.ready(101.0)
    add(batch)
    assert not scene.ready(101.0)
    assert not scene.wants_turn, "no pass in every turn of the loop"
    assert not scene.ready(101.0)
    awaits(batch, 1)
    awaits(batch, 2)
    assert scene.ready(101.0)


def test_awaiting_a_watched_batch_extends_the_watch_by_a_turn() -> None:
    scene, batch = lingering()
    add(batch)
    awaits(batch, 0)
    assert not scene.ready(101.0)
    add(batch)
    awaits(batch, 1)
    assert not scene.ready(101.0)
    assert scene.wants_turn
    assert scene.ready(101.0)


@pytest.mark.parametrize("out", [Scene.close, Scene.drain])
def test_a_record_awaited_after_its_batch_has_left_does_not_hasten_the_next_batch(out: Callable[[Scene], None]) -> None:
    scene, batch = lingering()
    out(scene)
    scene.drain()
    scene.open(created=101.0)
    awaits(batch, 0)
    assert not scene.ready(101.0)
    assert not scene.wants_turn


def test_a_batch_that_left_since_it_was_awaited_is_not_looked_at() -> None:
    scene, batch = lingering()
    add(batch)
    awaits(batch, 0)
    assert not scene.ready(101.0)
    scene.drain()
    scene.open(created=101.0)
    assert not scene.ready(101.0)
    assert not scene.wants_turn


def test_a_fixed_linger_ignores_awaiting_tasks() -> None:
    scene = Scene()
    batch = scene.open()
    awaits(batch, 0)
    assert scene.wakes == 0
    assert not scene.ready(4.9)


def test_the_next_time_is_the_earliest_of_lingers_and_retries() -> None:
    scene = Scene()
    assert scene.schedule.next() is None
    scene.schedule.again(scene.queue, 50.0, now=0.0)
    assert scene.schedule.next() == 50.0
    scene.open(created=30.0)
    assert scene.schedule.next() == 35.0


def test_partitions_that_may_be_sent_are_looked_at_after_one_wake() -> None:
    scene = Scene()
    others = [PartitionQueue("t", number, None) for number in (1, 2)]
    for queue in others:
        queue.leader = 1
    scene.schedule.look_at(scene.queue, *others, scene.queue)
    assert list(scene.schedule.ready.of(1)) == [scene.queue, *others]
    assert scene.wakes == 1
