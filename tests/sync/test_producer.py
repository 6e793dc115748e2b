"""The producer for threads."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow
import pytest

import aioproducer
from aioproducer import Outcome, ProducerInterceptor, ProducerRecord, Reason, TopicPartition
from aioproducer.errors import (
    BufferExhaustedException,
    IllegalArgumentException,
    IllegalStateException,
    InvalidTopicException,
    KafkaError,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
)
from aioproducer.sync import Delivery, KafkaProducer
from aioproducer.testing import ApiKey, ErrorCode, ThreadedCluster

from .conftest import MakeProducer, own_threads

TIMEOUT = [("timeout", inspect.Parameter.POSITIONAL_OR_KEYWORD, None)]


def values(cluster: ThreadedCluster, topic: str = "t") -> list[bytes | None]:
    return [record.value for record in cluster.records(topic)]


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_it_has_the_producers_calls() -> None:
    """By name and parameters; a time-out is more where a thread would wait, and send has enqueue's back-pressure."""
    for name, real in inspect.getmembers(aioproducer.KafkaProducer, inspect.isroutine):
        if name.startswith("_") or name == "enqueue":
            continue
        theirs, ours = _parameters(real), _parameters(getattr(KafkaProducer, name))
        assert ours[: len(theirs)] == theirs, name
        assert ours[len(theirs) :] == (TIMEOUT if name == "flush" else []), name


def _parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values() if p.name != "self"]


# Everyday use


def test_a_delivered_record_is_read_unchanged(cluster: ThreadedCluster) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        delivery = producer.send("t", b"v", key=b"k", headers=[("h", b"x")], timestamp_ms=1_000, partition=0)
        metadata = delivery.result(timeout=30)
        assert (metadata.topic, metadata.partition, metadata.offset, metadata.timestamp_ms) == ("t", 0, 0, 1_000)
        assert producer.send(ProducerRecord("t", b"w")).result().offset == 1
        producer.send("t", b"not waited for")
    first, second, third = cluster.records("t")
    assert (first.value, first.key, first.headers) == (b"v", b"k", (("h", b"x"),))
    assert (second.value, third.value) == (b"w", b"not waited for")


def test_from_many_threads_each_in_its_own_order(cluster: ThreadedCluster, make_producer: MakeProducer) -> None:
    producer = make_producer(linger_ms=1)

    def send(thread: int) -> list[int]:
        deliveries = [producer.send("t", b"%d %d" % (thread, number)) for number in range(500)]
        return [delivery.result().offset for delivery in deliveries]

    with ThreadPoolExecutor(8) as threads:
        offsets = list(threads.map(send, range(8)))
    assert all(its == sorted(its) for its in offsets)
    assert sorted(offset for its in offsets for offset in its) == list(range(4000))
    sent = values(cluster)
    for thread in range(8):
        mine = [value for value in sent if value is not None and value.startswith(b"%d " % thread)]
        assert mine == [b"%d %d" % (thread, number) for number in range(500)]


def test_bulk_calls(cluster: ThreadedCluster, producer: KafkaProducer) -> None:
    result = producer.send_many("t", (value for value in numbered(100)), keys=[b"k"] * 100)
    assert (result.delivered, result.offsets["t", 0].last) == (100, 99)
    assert producer.send_table("t", pyarrow.table({"v": ["x", "y"]}), value="v").delivered == 2
    assert values(cluster) == [*numbered(100), b"x", b"y"]
    with pytest.raises(IllegalArgumentException):
        producer.send_many("t", 7)  # type: ignore[arg-type]


def test_partitions_explanation_metrics_and_health_are_those_of_the_producer(producer: KafkaProducer) -> None:
    assert len(producer.partitions_for("six")) == 6
    assert producer.client_instance_id(10) == producer.client_instance_id(0)
    assert producer.explain("t", 0).reason is Reason.NOTHING
    producer.send("t", b"v").result()
    assert producer.metrics()["record-send-total"] == 1
    assert producer.health() == []
    assert producer.config.linger_ms == 0
    assert repr(producer).endswith(": running; 0 batches have not ended>")
    assert KafkaProducer.from_config("bootstrap.servers=h:9092\nlinger.ms=7").config.linger_ms == 7


def test_arguments_may_be_changed_after_the_call(cluster: ThreadedCluster, producer: KafkaProducer) -> None:
    value, headers = bytearray(b"before"), [("h", b"before")]
    delivery = producer.send("t", value, headers=headers)
    value[:] = b"after!"
    headers[0] = ("h", b"after")
    delivery.result()
    (record,) = cluster.records("t")
    assert (record.value, record.headers) == (b"before", (("h", b"before"),))


def test_serializers_are_called_in_the_thread_that_sends(cluster: ThreadedCluster, make_producer: MakeProducer) -> None:
    called: list[int] = []

    def serialize(value: Any) -> bytes:
        called.append(threading.get_ident())
        return b",".join(b"%d" % number for number in value)

    producer = make_producer(value_serializer=serialize)
    numbers = [1, 2]
    delivery = producer.send("t", numbers)
    numbers.append(3)
    delivery.result()
    producer.send("t", range(2000)).result()  # a large one, which goes another way
    assert called == [threading.get_ident()] * 2
    assert values(cluster) == [b"1,2", b",".join(numbered(2000))]
    with pytest.raises(SerializationException, match="cannot serialize a int"):
        producer.send("t", 7)
    assert producer.send_many("t", [[1], [2]]).delivered == 2


def test_coroutines_serialize_on_the_loop_and_the_call_waits_for_them(
    cluster: ThreadedCluster, make_producer: MakeProducer
) -> None:
    called: list[int] = []

    async def serialize(value: int) -> bytes:
        called.append(threading.get_ident())
        await asyncio.sleep(0.001)
        return b"%d" % (5 // value)

    producer = make_producer(value_serializer=serialize)
    assert producer.send("t", 1).result().offset == 0
    with pytest.raises(SerializationException, match="ZeroDivisionError"):
        producer.send("t", 0)
    assert producer.send_many("t", [1, 0, 5]).failed == 1
    assert set(called) == {called[0]} != {threading.get_ident()}
    with ThreadPoolExecutor(4) as pool:
        assert sorted(one.result().offset for one in pool.map(producer.send, ["t"] * 8, [1] * 8)) == list(range(3, 11))
    assert values(cluster)[:3] == [b"5", b"5", b"1"]


def test_an_awaitable_of_a_thread_is_made_again_on_the_loop(
    cluster: ThreadedCluster, make_producer: MakeProducer
) -> None:
    known: set[str] = set()
    called: list[int] = []

    async def look_up(value: str) -> bytes:
        known.add(value)
        return value.encode()

    def serialize(value: str) -> Any:
        called.append(threading.get_ident())
        return value.encode() if value in known else look_up(value)

    producer = make_producer(value_serializer=serialize)
    deliveries = [producer.send("t", value) for value in ("a", "b", "a", "b")]
    assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2, 3]
    assert values(cluster) == [b"a", b"b", b"a", b"b"]
    assert called.count(threading.get_ident()) == 4
    assert len(called) == 6


def test_threads_wait_while_a_serializer_is_at_work(cluster: ThreadedCluster, make_producer: MakeProducer) -> None:
    """Their records wait behind it, and would otherwise have no room sooner or later."""
    begun = threading.Event()
    ends: list[Callable[[], object]] = []

    async def look_up() -> bytes:
        end = asyncio.Event()
        ends.append(partial(asyncio.get_running_loop().call_soon_threadsafe, end.set))
        begun.set()
        await end.wait()
        return b"slow"

    def serialize(value: bytes) -> Any:
        return look_up() if value == b"slow" else value

    producer = make_producer(value_serializer=serialize, parked_memory=100_000, max_block_ms=30_000)
    assert producer.send("t", b"first").result().offset == 0
    slow = threading.Thread(target=producer.send, args=("t", b"slow"))
    slow.start()
    assert begun.wait(30)
    sent: list[Delivery] = []
    others = threading.Thread(target=lambda: sent.extend(producer.send("t", b"%d" % number) for number in range(1000)))
    others.start()
    others.join(0.2)
    assert others.is_alive()
    ends[0]()
    others.join()
    slow.join()
    assert [delivery.result().offset for delivery in sent] == list(range(2, 1002))
    assert values(cluster)[:3] == [b"first", b"slow", b"0"]


def test_interceptors_and_partitioners_are_called_by_its_own_thread(
    cluster: ThreadedCluster, make_producer: MakeProducer
) -> None:
    called: list[str] = []

    class Watching(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            called.append(threading.current_thread().name)
            return record

    def sixth(*_: Any) -> int:
        called.append(threading.current_thread().name)
        return 5

    producer = make_producer(interceptor_classes=[Watching], partitioner_class=sixth)
    assert producer.send("six", b"v").result().partition == 5
    assert set(called) == {"aioproducer"}


def test_large_records_go_in_order_with_small_ones(cluster: ThreadedCluster, producer: KafkaProducer) -> None:
    sent = [bytes(5000) if number % 7 == 3 else b"%d" % number for number in range(100)]
    for value in sent:
        producer.send("t", value)
    producer.flush()
    assert values(cluster) == sent


# What goes wrong


@pytest.mark.parametrize(
    ("misuse", "error"),
    [
        (lambda send: send(7), IllegalArgumentException),
        (lambda send: send(""), IllegalArgumentException),
        (lambda send: send("t", 7), SerializationException),
        (lambda send: send("t", b"v", partition=-1), IllegalArgumentException),
        (lambda send: send("t", b"v", timestamp_ms="now"), IllegalArgumentException),
        (lambda send: send("t", b"v", headers=[("h", "no bytes")]), SerializationException),
        (lambda send: send("not allowed", b"v"), InvalidTopicException),
    ],
)
def test_misuse_is_raised_and_takes_nothing(
    cluster: ThreadedCluster, producer: KafkaProducer, misuse: Callable[[Any], Any], error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        misuse(producer.send)
    assert producer.send("t", b"v").result().offset == 0


def test_a_topic_that_nobody_knows_of() -> None:
    with (
        ThreadedCluster(configs={"auto.create.topics.enable": "false"}) as cluster,
        KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, max_block_ms=50) as producer,
        pytest.raises(TimeoutException, match="nowhere"),
    ):
        producer.send("nowhere", b"v")


def test_a_failed_record_raises_to_every_caller(cluster: ThreadedCluster, producer: KafkaProducer) -> None:
    cluster.faults.on(ApiKey.PRODUCE).answer(ErrorCode.INVALID_RECORD)
    delivery = producer.send("t", b"v")
    error = delivery.exception()
    assert error is not None
    with pytest.raises(KafkaError) as raised:
        delivery.result()
    assert raised.value is not error  # each caller gets its own error
    assert str(delivery.outcome) == "Outcome.NOT_SENT"
    with pytest.raises(RecordTooLargeException):
        producer.send("t", bytes(2_000_000))


def test_a_record_that_is_refused_unseen_is_in_the_log(
    cluster: ThreadedCluster, make_producer: MakeProducer, caplog: pytest.LogCaptureFixture
) -> None:
    """Outside of a transaction: the loop finds it, and there is nobody to be raised to."""
    producer = make_producer(transactional_id="x")
    producer.init_transactions()
    delivery = producer.send("t", b"v")
    with pytest.raises(IllegalStateException, match="belong to a transaction"):
        delivery.result()
    producer.close()
    assert [record.message for record in caplog.records if "belong to a transaction" in record.message]


def test_a_stream_waits_for_memory_and_loses_nothing(cluster: ThreadedCluster, make_producer: MakeProducer) -> None:
    """Many times what memory there is, and of what may be on its way to it."""
    config = {"buffer_memory": 40_000, "batch_size": 4000, "parked_memory": 20_000, "max_block_ms": 60_000}
    producer = make_producer(**config, delivery_timeout_ms=120_000)

    def send(thread: int) -> list[Delivery]:
        return [producer.send("t", b"%d %d" % (thread, number) + bytes(200)) for number in range(300)]

    with ThreadPoolExecutor(4) as threads:
        deliveries = [delivery for its in threads.map(send, range(4)) for delivery in its]
    assert [delivery.exception() for delivery in deliveries] == [None] * 1200
    assert cluster.end_offset("t") == 1200


def test_without_memory_a_record_fails_after_max_block_ms(
    cluster: ThreadedCluster, make_producer: MakeProducer
) -> None:
    cluster.faults.on(ApiKey.PRODUCE, times=None).never_answer()
    producer = make_producer(buffer_memory=10_000, batch_size=1000, max_block_ms=500, parked_memory=100_000)
    deliveries = [producer.send("t", bytes(900)) for _ in range(12)]
    assert all(isinstance(delivery.exception(30), BufferExhaustedException) for delivery in deliveries[10:])
    producer.close(timeout=0)
    assert all(delivery.exception() is not None for delivery in deliveries)


# Life


def test_it_begins_with_the_first_call_and_may_be_closed_twice(cluster: ThreadedCluster) -> None:
    before = own_threads()
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    assert own_threads() == before
    delivery = producer.send("t", b"v")
    assert len(own_threads()) == len(before) + 1
    producer.close()
    assert delivery.done()
    producer.close(timeout=1)
    assert own_threads() == before
    for call in (producer.start, producer.flush, lambda: producer.send("t", b"v"), lambda: producer.send_many("t", [])):
        with pytest.raises(IllegalStateException, match="closed"):
            call()
    assert delivery.result().offset == 0


def test_a_producer_that_was_never_used_is_closed_all_the_same() -> None:
    producer = KafkaProducer(bootstrap_servers="nowhere:1")
    producer.close()
    with pytest.raises(IllegalStateException, match="closed"):
        producer.send("t", b"v")


def test_threads_that_send_while_it_is_closed_get_an_error(make_producer: MakeProducer) -> None:
    """Whatever the moment, a delivery ends and nobody hangs."""
    for _ in range(5):
        producer = make_producer()
        producer.start()
        going = threading.Event()

        def send(producer: KafkaProducer = producer, going: threading.Event = going) -> list[Delivery]:
            sent: list[Delivery] = []
            try:
                while True:
                    sent.append(producer.send("t", b"v"))
                    going.set()
            except IllegalStateException:
                return sent

        with ThreadPoolExecutor(4) as threads:
            running = [threads.submit(send) for _ in range(4)]
            assert going.wait(30)
            producer.close()
            deliveries = [delivery for thread in running for delivery in thread.result(30)]
        ends = [delivery.exception(30) for delivery in deliveries]
        assert all(error is None or isinstance(error, IllegalStateException | KafkaError) for error in ends)
        assert None in ends


def test_it_is_closed_by_a_signal_while_its_thread_waits(cluster: ThreadedCluster, producer: KafkaProducer) -> None:
    cluster.faults.on(ApiKey.PRODUCE).delay_response(0.1)
    before = signal.signal(signal.SIGUSR1, lambda *_: producer.close())
    try:
        delivery = producer.send("t", b"v")
        timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        producer.flush()
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert delivery.result().offset == 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_ends_the_thread(cluster: ThreadedCluster, producer: KafkaProducer) -> None:
    cluster.faults.on(ApiKey.PRODUCE).delay_response(0.05)
    first = producer.send("t", b"1")
    thread = next(thread for thread in threading.enumerate() if thread.name == "aioproducer")
    first.add_done_callback(lambda _: sys.exit())
    assert first.result().offset == 0
    thread.join(30)
    for wait in (producer.flush, producer.send("t", b"2").result):
        with pytest.raises(IllegalStateException, match="closed"):
            wait()
    producer.close()


def test_threads_that_close_it_at_the_same_time(producer: KafkaProducer) -> None:
    delivery = producer.send("t", b"v")
    with ThreadPoolExecutor(4) as threads:
        for closed in [threads.submit(producer.close) for _ in range(4)]:
            closed.result(30)
    assert delivery.result().offset == 0


def test_flush_and_close_have_time_outs(cluster: ThreadedCluster, make_producer: MakeProducer) -> None:
    cluster.faults.on(ApiKey.PRODUCE, times=None).never_answer()
    producer = make_producer()
    delivery = producer.send("t", b"v")
    with pytest.raises(TimeoutError, match="flush"):
        producer.flush(timeout=0.05)
    with pytest.raises(TimeoutError, match="not delivered within"):
        delivery.result(timeout=0.05)
    assert not delivery.done()
    with pytest.raises(IllegalArgumentException, match="must be 0 or more"):
        producer.close(timeout=-1)
    producer.close(timeout=0.05)
    assert str(delivery.outcome) == "Outcome.UNKNOWN"
    with pytest.raises(KafkaError, match="closed"):
        delivery.result()


def test_ctrl_c_interrupts_a_waiting_call(cluster: ThreadedCluster, make_producer: MakeProducer) -> None:
    cluster.faults.on(ApiKey.PRODUCE, times=None).never_answer()
    producer = make_producer()
    delivery = producer.send("t", b"v")
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    interrupt = partial(threading.Timer, 0.05, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        for wait in (producer.flush, delivery.result):
            timer = interrupt()
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                wait()
            timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not delivery.done()
    producer.close(timeout=0)


# Callbacks


def test_callbacks_may_send_and_may_not_wait(cluster: ThreadedCluster, producer: KafkaProducer) -> None:
    cluster.faults.on(ApiKey.PRODUCE).delay_response(0.1)  # so that it is not done when it is given the callback
    refused: list[BaseException] = []
    after: list[Delivery] = []
    sent = threading.Event()

    def once_delivered(delivery: Delivery) -> None:
        after.append(producer.send("six", b"another topic", key=b"k"))
        for wait in (producer.flush, producer.close, after[0].result, lambda: producer.partitions_for("t")):
            try:
                wait()
            except IllegalStateException as error:
                refused.append(error)
        sent.set()

    delivery = producer.send("t", b"v")
    delivery.add_done_callback(once_delivered)
    assert sent.wait(30)
    assert after[0].result().topic == "six"
    assert delivery.result().offset == 0
    assert len(refused) == 4


def test_a_callback_that_raises_spoils_nothing(producer: KafkaProducer, caplog: pytest.LogCaptureFixture) -> None:
    delivery = producer.send("t", b"v")
    delivery.add_done_callback(lambda _: 1 / 0)
    assert delivery.result().offset == 0
    producer.flush()
    delivery.add_done_callback(lambda _: 1 / 0)  # at once
    producer.close()
    assert len([record for record in caplog.records if "callback raised" in record.message]) == 2


# Transactions


def test_transactions(cluster: ThreadedCluster, make_producer: MakeProducer) -> None:
    producer = make_producer(transactional_id="x")
    producer.init_transactions()
    with producer.transaction() as same:
        assert same is producer
        committed = producer.send("t", b"1")
        producer.send_offsets_to_transaction({TopicPartition("in", 0): 42}, "g")
    assert committed.result().offset == 0
    assert cluster.committed_offsets("g") == {TopicPartition("in", 0): 42}
    for cause in (ZeroDivisionError, KeyboardInterrupt):
        with pytest.raises(cause):
            _fail_within_a_transaction(producer, cause)
    producer.begin_transaction()
    producer.send("t", b"3").result()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.send("t", b"4")
    producer.commit_transaction()
    assert b"4" in values(cluster)


def test_units_of_many_threads_share_commits(cluster: ThreadedCluster, make_producer: MakeProducer) -> None:
    producer = make_producer(transactional_id="x")
    producer.init_transactions()

    def write(number: int) -> int:
        with producer.unit() as unit:
            unit.send("t", b"unit %d" % number)
            unit.send_offsets({TopicPartition("in", 0): number}, "g")
        unit.wait()
        assert unit.committed
        assert unit.done()
        assert unit.outcome is None
        return unit.result()[0].offset

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(write, range(40)))) == 40
    dropped = producer.unit()
    dropped.__enter__()
    dropped.send("t", b"dropped")
    dropped.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert dropped.outcome is Outcome.NOT_SENT
    assert set(values(cluster)) == {b"unit %d" % number for number in range(40)}
    assert len(values(cluster)) == 40


def _fail_within_a_transaction(producer: KafkaProducer, cause: type[BaseException]) -> None:
    with producer.transaction():
        producer.send("t", b"aborted")
        raise cause
