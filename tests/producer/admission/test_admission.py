"""Any course of sends, ends and a close, by the rules alone: what interceptors saw they are told the end of, once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioproducer import DeliveryError, ProducerInterceptor, ProducerRecord, RecordMetadata, TopicPartition
from aioproducer.configs.producer_config import producer_config
from aioproducer.errors import (
    IllegalArgumentException,
    IllegalStateException,
    RecordTooLargeException,
    SerializationException,
)
from aioproducer.producer.admission.admission import Admission
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.hooks.hooks import Hooks
from aioproducer.producer.parking.parked_record import ParkedRecord
from tests.producer.parking.test_parking_lot import Parking
from tests.producer.simulations.standing_loop import NOW_MS, failure
from tests.support.splitting import split

TOPICS = ("t", "u")


class Counting(ProducerInterceptor):
    """Numbers records from 0 on, and keeps their ends in the order told. Raises for every third, which harms nobody."""

    def __init__(self) -> None:
        self.seen = 0
        self.ends: dict[int, RecordMetadata | BaseException] = {}
        self.told_as: dict[int, str] = {}

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.seen += 1
        return record._replace(headers=[("number", b"%d" % (self.seen - 1))])

    def _ended(self, headers: Any, end: RecordMetadata | BaseException, told_as: str) -> None:
        number = int(headers[0][1])
        assert number not in self.ends, f"record {number} ended twice"
        self.ends[number] = end
        self.told_as[number] = told_as
        if number % 3 == 0:
            raise RuntimeError("its own affair")

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Any) -> None:
        self._ended(headers, metadata if error is None else error, "acknowledged")

    def on_send_error(self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException) -> None:
        self._ended(record.headers, error, "not sent")


def only_bytes(data: Any) -> bytes:
    if not isinstance(data, bytes):
        raise TypeError
    return data


class AdmissionMachine(RuleBasedStateMachine):
    @initialize(memory=st.sampled_from([5_000, 20_000, 10**6]), capacity=st.sampled_from([300, 10**6]))
    def begin(self, memory: int, capacity: int) -> None:
        self.here = Parking(memory=memory, capacity=capacity, max_request_size=3000)
        config = producer_config(
            {"bootstrap.servers": "b:1", "interceptor.classes": [Counting], "value.serializer": only_bytes}
        )
        self.hooks = Hooks(config)
        self.hooks.bind(self.here.loop, lambda: False)
        self.counting: Counting = self.hooks._plugins[0]
        self.here.accumulator.audience.hooks = self.hooks
        sender: Any = SimpleNamespace(fatal=None, parked=lambda topic: None)
        self.admission = Admission(
            config,
            self.here.accumulator,
            self.here.lot,
            sender,
            None,
            self.hooks,
            self.here.metrics,
            self.here.failures,
            check_place=lambda: None,
        )
        self.deliveries: dict[int, Delivery] = {}
        self.parked: list[ParkedRecord] = []
        self.refused: dict[int, BaseException] = {}
        self.closed = False

    @rule(
        topic=st.sampled_from(TOPICS),
        value=st.sampled_from([b"v", bytes(500), bytes(2000), bytes(4000), "no bytes"]),
        partition=st.sampled_from([None, 0, 1, 7, -1]),
        enqueue=st.booleans(),
    )
    def send(self, topic: str, value: Any, partition: int | None, enqueue: bool) -> None:
        number = self.counting.seen
        try:
            record = ProducerRecord(topic, value, None, partition)
            made = self.admission.let_in(record, object if enqueue else None)
        except (
            IllegalArgumentException,
            IllegalStateException,
            RecordTooLargeException,
            SerializationException,
        ) as error:
            self.refused[number] = error
            return
        if isinstance(made, ParkedRecord):
            self.parked.append(made)
        self.deliveries[number] = made.delivery() if isinstance(made, ParkedRecord) else made

    @rule(topic=st.sampled_from(TOPICS), partitions=st.integers(1, 2))
    def learn(self, topic: str, partitions: int) -> None:
        self.here.learn(topic, partitions)

    def _queue(self, data: st.DataObject) -> Any:
        queues = [queue for topic in self.here.accumulator.topics.values() for queue in topic.queues]
        queue = data.draw(st.sampled_from(queues))
        self.here.accumulator.close_batch(queue)
        return queue

    @precondition(lambda self: any(batch.buffer for batch in self.here.opened))
    @rule(data=st.data(), succeeds=st.booleans())
    def batch_ends(self, data: st.DataObject, succeeds: bool) -> None:
        queue = self._queue(data)
        if queue.batches:
            batch = queue.batches.popleft()
            self.here.pool.deallocate(batch.allocated)
            assert batch.succeed(100, -1) if succeeds else batch.result.fail(failure())
            self.here.lot.place()

    @precondition(lambda self: any(batch.buffer for batch in self.here.opened))
    @rule(data=st.data())
    def batch_is_split(self, data: st.DataObject) -> None:
        queue = self._queue(data)
        if queue.batches and queue.batches[0].count > 1:
            batch = queue.batches.popleft()
            children = split(batch, batch.records, 1)
            batch.result.forward([(child.first, child.result, 0) for child in children])
            self.here.pool.deallocate(batch.allocated)
            for child in reversed(children):
                self.here.accumulator.trim(child)
                queue.batches.appendleft(child)

    @rule(seconds=st.sampled_from([1.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.here.pass_time(seconds)

    @precondition(lambda self: self.parked)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        self.here.lot.withdraw(data.draw(st.sampled_from(self.parked)))

    @rule()
    def close(self) -> None:
        self.admission.close()
        self.closed = True

    def _abort(self) -> None:
        """As the Sender does at the end: what is parked, then every batch."""
        self.admission.close()
        self.here.lot.fail_all(failure(), aborted=True)
        for topic in self.here.accumulator.topics.values():
            for queue in topic.queues:
                self.here.accumulator.close_batch(queue)
                while queue.batches:
                    queue.batches.popleft().result.fail(failure(), True)

    @invariant()
    def who_has_ended_is_told_and_as_whoever_sent_it(self) -> None:
        if not hasattr(self, "counting"):
            return
        ended = {number for number, delivery in self.deliveries.items() if delivery.done()}
        assert self.counting.ends.keys() == ended | self.refused.keys()
        assert self.hooks.depth == 0

    def teardown(self) -> None:
        if not hasattr(self, "counting"):
            return
        self._abort()
        assert self.counting.ends.keys() == set(range(self.counting.seen))
        for number, end in self.counting.ends.items():
            if number in self.refused:
                assert end is self.refused[number]
                continue
            delivery = self.deliveries[number]
            if isinstance(end, RecordMetadata):
                assert delivery.result() == end
                assert end.timestamp_ms == NOW_MS
            else:
                told = delivery.exception()
                assert told is not None
                assert (type(told).__name__, str(told)) == (type(end).__name__, str(end))
            in_a_batch = delivery._present_result().sizes or delivery._present_result().intercepted
            assert self.counting.told_as[number] == "acknowledged" or not in_a_batch
            assert isinstance(end, RecordMetadata | DeliveryError | RecordTooLargeException)


AdmissionMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestAdmission = AdmissionMachine.TestCase
