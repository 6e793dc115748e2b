"""The mock of the producer: Kafka's MockProducer, with the behaviour of the real producer."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import Any, ClassVar
from uuid import UUID

import pyarrow
import pytest

from aioproducer import (
    ConsumerGroupMetadata,
    Delivery,
    KafkaProducer,
    MetricName,
    OffsetAndMetadata,
    Outcome,
    PreparedTxnState,
    ProducerInterceptor,
    ProducerRecord,
    Reason,
    TopicPartition,
)
from aioproducer.errors import (
    DeliveryError,
    IllegalArgumentException,
    IllegalStateException,
    InvalidTxnStateException,
    KafkaError,
    NotEnoughReplicasException,
    ProducerFencedException,
    RecordTooLargeException,
    SerializationException,
    TimeoutException,
    TransactionAbortableException,
    TransactionAbortedException,
)
from aioproducer.testing import MockProducer
from tests.support.leaks import no_leaks as no_leaks

pytestmark = pytest.mark.usefixtures("no_leaks")

TRANSACTIONAL: dict[str, Any] = {"transactional_id": "x"}


def values(records: list[ProducerRecord]) -> list[Any]:
    return [record.value for record in records]


def test_its_calls_are_the_producers() -> None:
    """The mock has every method of the producer, with the same name, parameters and kind."""
    for name, real in inspect.getmembers(KafkaProducer):
        mocked = getattr(MockProducer, name)
        if name.startswith("_") or not callable(real) or mocked is real:
            continue
        assert _parameters(mocked) == _parameters(real), name
    assert issubclass(MockProducer, KafkaProducer)


def _parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


# Records


async def test_records_are_written_down_and_delivered_by_themselves() -> None:
    async with MockProducer(topics={"t": 6}) as producer:
        delivery = producer.send("t", b"v", key=b"key1", headers=[("h", b"x")], timestamp_ms=1_000)
        assert not delivery.done()  # no real delivery is done before send returns
        metadata = await delivery
        assert (metadata.topic, metadata.offset, metadata.timestamp_ms) == ("t", 0, 1_000)
        assert (metadata.serialized_key_size, metadata.serialized_value_size) == (4, 1)
        assert producer.history == [ProducerRecord("t", b"v", b"key1", None, 1_000, [("h", b"x")])]
        again = await producer.send(ProducerRecord("t", b"w", b"key1"))
        assert (again.partition, again.offset) == (metadata.partition, 1)
        producer.clear()
        assert producer.history == []


async def test_every_call_is_written_down_by_record() -> None:
    async with MockProducer() as producer:
        _ = producer.send("t", b"1")
        _ = await producer.enqueue("t", b"2", partition=0)
        result = await producer.send_many("t", [b"3", b"4"], keys=[b"k", None])
        assert (await producer.send_many("new", [b"0"])).delivered == 1
        table = pyarrow.table({"v": ["5", "6"]})
        rows = await producer.send_table("t", table, value="v")
        assert (result.delivered, rows.delivered, rows.offsets["t", 0].last) == (2, 2, 5)
        assert values(producer.history) == [b"1", b"2", b"3", b"4", b"0", b"5", b"6"]


async def test_by_hand_the_oldest_ends_first() -> None:
    async with MockProducer(auto_complete=False) as producer:
        first, second, third = (producer.send("t", value) for value in (b"1", b"2", b"3"))
        ended: list[Delivery] = []
        for delivery in (first, second, third):
            delivery.add_done_callback(ended.append)
        assert not producer.flushed
        assert producer.complete_next()
        assert (first.done(), second.done()) == (True, False)
        assert producer.error_next(NotEnoughReplicasException("too few"), outcome=Outcome.UNKNOWN)
        with pytest.raises(NotEnoughReplicasException, match="too few") as failed:
            await second
        assert isinstance(failed.value, DeliveryError)
        assert (second.outcome, failed.value.topic_partition) == (Outcome.UNKNOWN, ("t", 0))
        assert producer.complete_next()
        assert (first.result().offset, third.result().offset) == (0, 1)  # the failed record has no offset
        assert not producer.complete_next()
        assert not producer.error_next(KafkaError("none left"))
        assert producer.flushed
        assert ended == [first, second, third]


async def test_flush_does_not_wait_for_what_callbacks_send_meanwhile() -> None:
    async with MockProducer(auto_complete=False) as producer:
        left = 5

        def again(_: Delivery) -> None:
            nonlocal left
            if left:
                left -= 1
                producer.send("t", b"again").add_done_callback(again)

        producer.send("t", b"first").add_done_callback(again)
        await producer.flush()
        assert left == 4


async def test_flush_and_close_deliver_what_is_left() -> None:
    async with MockProducer(auto_complete=False) as producer:
        one = producer.send("t", b"1")
        await producer.flush()
        assert one.result().offset == 0
        two = producer.send("t", b"2")
    assert two.result().offset == 1
    assert producer.closed
    with pytest.raises(IllegalStateException, match="closed"):
        _ = producer.send("t", b"3")
    assert values(producer.history) == [b"1", b"2"]


async def test_a_callback_may_send() -> None:
    async with MockProducer() as producer:
        first = producer.send("t", b"1")
        first.add_done_callback(lambda _: producer.send("t", b"2"))
        await first
        await producer.flush()
        assert (values(producer.history), producer.flushed) == ([b"1", b"2"], True)


async def test_an_unawaited_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with MockProducer(auto_complete=False) as producer:
        _ = producer.send("t", b"1")
        producer.error_next(TimeoutException("too late"))
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "t-0: 1 record was not delivered (not_sent): too late" in record.message
    assert producer.metrics()["record-error-total"] == 1


async def test_topics_may_be_only_names() -> None:
    async with MockProducer(topics=["t"]) as producer:
        assert len(await producer.partitions_for("t")) == 1
    with pytest.raises(IllegalArgumentException, match="names of topics"):
        MockProducer(topics="orders")


async def test_only_kafkas_errors_end_records() -> None:
    async with MockProducer(auto_complete=False) as producer:
        _ = producer.send("t", b"1")
        with pytest.raises(IllegalArgumentException, match="not with a ValueError"):
            producer.error_next(ValueError("x"))  # type: ignore[arg-type]


async def test_clear_forgets_what_has_not_ended() -> None:
    async with MockProducer(auto_complete=False) as producer:
        forgotten = producer.send("t", b"1")
        producer.clear()
        assert producer.flushed
        assert not producer.complete_next()
        assert not forgotten.done()


# The real producer's part


async def test_serializers_partitioner_and_interceptors_are_the_users() -> None:
    seen: list[Any] = []

    class Watching(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(headers=[("added", b"1")])

        def on_acknowledgement(self, metadata: Any, error: Any, headers: Any) -> None:
            seen.append((metadata.partition, error, headers))

    async with MockProducer(
        topics={"t": 4},
        value_serializer=lambda value: str(value).encode(),
        partitioner_class=lambda topic, key, key_bytes, value, value_bytes, partitions: value % len(partitions),
        interceptor_classes=[Watching],
    ) as producer:
        assert (await producer.send("t", 7)).partition == 3
        assert seen == [(3, None, (("added", b"1"),))]
        assert values(producer.history) == [7]  # as it was given
        assert (await producer.send("new", 7)).partition == 0


async def encode(data: int) -> bytes:
    await asyncio.sleep(0)
    return b"%d" % (10 // data)


@pytest.mark.parametrize("serializer", [encode, lambda data: b"1" if data == 1 else encode(data)])
async def test_serializers_may_be_coroutines(serializer: Any) -> None:
    async with MockProducer(topics={"t": 1}, value_serializer=serializer) as producer:
        assert (await producer.send("t", 2)).offset == 0
        first, second = producer.send("t", 3), producer.enqueue("t", 1)
        assert values(producer.history) == [2]
        delivery = await second
        assert values(producer.history) == [2, 3, 1]
        assert (first.outcome, (await delivery).offset) == (None, 2)
        with pytest.raises(SerializationException, match="ZeroDivisionError"):
            await producer.send("t", 0)
        assert (await producer.send_many("new", [5, 2])).delivered == 2
        assert values(producer.history) == [2, 3, 1, 5, 2]


async def test_flush_and_close_wait_for_coroutines() -> None:
    async with MockProducer(auto_complete=False, value_serializer=encode) as producer:
        first = producer.send("t", 1)
        await producer.flush()
        assert first.result().offset == 0
        second = producer.send("t", 1)
        await producer.close()
        assert second.result().offset == 1


async def test_a_coroutine_that_never_returns_ends_after_max_block_ms() -> None:
    async def never(data: int) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with MockProducer(value_serializer=never, max_block_ms=10) as producer:
        with pytest.raises(TimeoutException, match=r"not serialized within max\.block\.ms"):
            await producer.send("t", 1)
        with pytest.raises(TimeoutException):
            _ = await producer.enqueue("t", 1)
        assert producer.history == []


async def test_coroutines_in_a_transaction() -> None:
    async with MockProducer(value_serializer=encode, **TRANSACTIONAL) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            _ = producer.send("t", 2)
        assert values(producer.history) == [2]
        await producer.begin_transaction()
        _ = producer.send("t", 0)
        with pytest.raises(TransactionAbortableException):
            await producer.commit_transaction()
        await producer.abort_transaction()
        assert values(producer.history) == [2]


async def test_misuse_raises_as_ever_and_is_not_written_down() -> None:
    async with MockProducer(max_request_size=1000) as producer:
        with pytest.raises(SerializationException):
            _ = producer.send("t", 7)  # type: ignore[call-overload]
        with pytest.raises(IllegalArgumentException):
            _ = producer.send("t", b"1", partition=-1)
        large = producer.send("t", bytes(2000))
        with pytest.raises(RecordTooLargeException):
            await large
        with pytest.raises(RecordTooLargeException):
            _ = await producer.enqueue("t", bytes(2000))
        assert producer.history == []


async def test_a_partition_that_is_not_there() -> None:
    """A real producer would wait max.block.ms for the partition."""
    async with MockProducer(topics={"t": 2}) as producer:
        with pytest.raises(TimeoutException, match="no such partition"):
            await producer.send("t", b"1", partition=2)
        with pytest.raises(TimeoutException, match="no such partition"):
            _ = await producer.enqueue("t", b"1", partition=2)
        result = await producer.send_many("t", [b"1", b"2"], partitions=[2, 1])
        assert (result.delivered, result.failed) == (1, 1)
        assert values(producer.history) == [b"2"]


async def test_records_without_a_key_go_where_they_went_last_time() -> None:
    async def partitions() -> list[int]:
        async with MockProducer(topics={"t": 10}) as producer:
            return [(await producer.send("t", b"1")).partition for _ in range(20)]

    once = await partitions()
    assert len(set(once)) > 1
    assert await partitions() == once


async def test_partitions_explanation_metrics_and_health_are_reported() -> None:
    async with MockProducer(topics={"t": 3}, auto_complete=False) as producer:
        assert [info.partition for info in await producer.partitions_for("t")] == [0, 1, 2]
        assert [info.leader for info in await producer.partitions_for("new")] == [0]
        assert producer.explain("t", 1).reason is Reason.NOTHING
        _ = producer.send("t", b"1", partition=1)
        explained = producer.explain("t", 1)
        assert (explained.reason, explained.records) == (Reason.IN_FLIGHT, 1)
        assert producer.metrics()["requests-in-flight"] == 1
        assert producer.health() == []


async def test_it_has_to_be_started_as_any_producer() -> None:
    producer = MockProducer.from_config({"bootstrap.servers": "kafka:9092", "linger.ms": 7})
    assert producer.config.linger_ms == 7
    with pytest.raises(IllegalStateException, match="not started"):
        _ = producer.send("t", b"1")
    with pytest.raises(IllegalStateException, match="not started"):
        producer.complete_next()


# Errors that tests set


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("flush", lambda producer: producer.flush()),
        ("partitions_for", lambda producer: producer.partitions_for("t")),
        ("close", lambda producer: producer.close()),
    ],
)
async def test_calls_raise_the_errors_that_are_set(name: str, call: Any) -> None:
    async with MockProducer() as producer:
        setattr(producer.errors, name, KafkaError("as set"))
        for _ in range(2):
            with pytest.raises(KafkaError, match="as set"):
                await call(producer)
        setattr(producer.errors, name, None)
        await call(producer)


async def test_no_record_is_let_in_whatever_call_brings_it() -> None:
    async with MockProducer() as producer:
        producer.errors.send = TimeoutException("as set")
        with pytest.raises(TimeoutException):
            _ = producer.send("t", b"1")
        with pytest.raises(TimeoutException):
            _ = await producer.enqueue("t", b"1")
        result = await producer.send_many("t", [b"1", b"2"])
        assert (result.failed, type(result.errors[0][1]).__name__) == (2, "TimeoutException")
        producer.errors.send = None
        await producer.send("t", b"2")
        assert values(producer.history) == [b"2"]


async def test_a_call_that_would_wait_for_its_caller_is_refused() -> None:
    async with MockProducer() as producer:
        refused: list[BaseException] = []

        def once_delivered(_: Delivery) -> None:
            try:
                producer.flush().close()
            except IllegalStateException as error:
                refused.append(error)

        delivery = producer.send("t", b"1")
        delivery.add_done_callback(once_delivered)
        await delivery
        assert len(refused) == 1


@pytest.mark.parametrize("partitions", [0, -1, "six"])
def test_a_topic_has_partitions(partitions: Any) -> None:
    with pytest.raises(IllegalArgumentException, match="topics"):
        MockProducer(topics={"t": partitions})


def test_an_error_for_no_call_of_its_is_a_mistake() -> None:
    with pytest.raises(AttributeError):
        MockProducer().errors.comit_transaction = KafkaError("x")  # type: ignore[attr-defined]


# Transactions


async def test_records_and_offsets_are_in_the_histories_when_they_are_committed() -> None:
    async with MockProducer(**TRANSACTIONAL) as producer:
        assert not producer.transaction_initialized
        await producer.init_transactions()
        assert producer.transaction_initialized
        assert repr(producer).endswith(": running; no transaction has begun; 0 batches have not ended>")
        await producer.begin_transaction()
        assert repr(producer).endswith(": running; a transaction is open; 0 batches have not ended>")
        assert (producer.transaction_in_flight, producer.sent_offsets) == (True, False)
        await producer.send("t", b"1")
        await producer.send_offsets_to_transaction({}, "g")
        assert not producer.sent_offsets
        await producer.send_offsets_to_transaction({TopicPartition("in", 0): 42, TopicPartition("in", 1): 7}, "g")
        later = {TopicPartition("in", 1): OffsetAndMetadata(8, "note")}
        await producer.send_offsets_to_transaction(later, ConsumerGroupMetadata("g", 1, "m"))
        together = {"g": {TopicPartition("in", 0): OffsetAndMetadata(42), **later}}
        assert (producer.history, values(producer.uncommitted_records)) == ([], [b"1"])
        assert (producer.uncommitted_offsets, producer.consumer_group_offsets_history) == (together, [])
        await producer.commit_transaction()
        assert (values(producer.history), producer.uncommitted_records) == ([b"1"], [])
        assert (producer.uncommitted_offsets, producer.consumer_group_offsets_history) == ({}, [together])
        assert (producer.transaction_committed, producer.transaction_aborted) == (True, False)
        assert (producer.transaction_in_flight, producer.commit_count, producer.sent_offsets) == (False, 1, True)
        await producer.begin_transaction()
        assert (producer.transaction_committed, producer.sent_offsets) == (False, False)


async def test_an_aborted_transaction_leaves_no_trace() -> None:
    async with MockProducer(auto_complete=False, **TRANSACTIONAL) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            _ = producer.send("t", b"1")
        given_up: list[Delivery] = []

        async def fail() -> None:
            async with producer.transaction():
                await producer.send_offsets_to_transaction({TopicPartition("in", 0): 42}, "g")
                given_up.append(producer.send("t", b"2"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        with pytest.raises(TransactionAbortedException):
            await given_up[0]
        assert (producer.transaction_aborted, producer.commit_count) == (True, 1)
        assert (values(producer.history), producer.consumer_group_offsets_history) == ([b"1"], [])
        async with producer.transaction():
            pass
        assert (producer.commit_count, producer.consumer_group_offsets_history) == (2, [])


async def test_a_transaction_fails_with_its_record() -> None:
    async with MockProducer(auto_complete=False, **TRANSACTIONAL) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        failed, other = producer.send("t", b"1"), producer.send("t", b"2")
        producer.error_next(TimeoutException("no leader"))
        with pytest.raises(TimeoutException):
            await failed
        with pytest.raises(TransactionAbortedException):
            await other
        with pytest.raises(IllegalStateException, match="must be aborted"):
            _ = producer.send("t", b"3")
        with pytest.raises(TransactionAbortableException, match="no leader"):
            await producer.commit_transaction()
        await producer.abort_transaction()
        async with producer.transaction():
            _ = producer.send("t", b"4")
        assert values(producer.history) == [b"4"]


class TestTwoPhaseCommit:
    """KIP-939: the calls of a prepared transaction. There is never one from before that was kept."""

    TWO_PHASES: ClassVar[dict[str, Any]] = {**TRANSACTIONAL, "transaction_two_phase_commit_enable": True}

    @pytest.mark.parametrize("same", [True, False])
    async def test_a_prepared_transaction_is_completed(self, same: bool) -> None:
        async with MockProducer(**self.TWO_PHASES) as producer:
            assert not await producer.init_transactions(keep_prepared_txn=True)
            await producer.begin_transaction()
            delivery = producer.send("t", b"1")
            state = await producer.prepare_transaction()
            assert state
            assert delivery.done()
            assert producer.transaction_in_flight
            with pytest.raises(IllegalStateException, match="the transaction is prepared"):
                _ = producer.send("t", b"2")
            assert await producer.complete_transaction(state if same else PreparedTxnState()) is same
            assert not producer.transaction_in_flight
            assert values(producer.history) == ([b"1"] if same else [])
            with pytest.raises(InvalidTxnStateException, match="no transaction is prepared"):
                await producer.complete_transaction(state)
            await producer.begin_transaction()
            assert await producer.prepare_transaction() != state
            await producer.commit_transaction()

    async def test_a_record_that_fails_fails_the_preparation(self) -> None:
        async with MockProducer(auto_complete=False, **self.TWO_PHASES) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            _ = producer.send("t", b"1")
            producer.error_next(TimeoutException("no leader"))
            with pytest.raises(TransactionAbortableException, match="no leader"):
                await producer.prepare_transaction()

    async def test_it_stays_when_the_producer_is_closed(self) -> None:
        async with MockProducer(**self.TWO_PHASES) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.prepare_transaction()
        assert producer.transaction_in_flight
        assert not producer.transaction_aborted

    async def test_it_must_be_enabled(self) -> None:
        async with MockProducer(**TRANSACTIONAL) as producer:
            with pytest.raises(InvalidTxnStateException, match=r"transaction\.two\.phase\.commit\.enable"):
                await producer.init_transactions(keep_prepared_txn=True)
            await producer.init_transactions()
            await producer.begin_transaction()
            with pytest.raises(InvalidTxnStateException, match=r"transaction\.two\.phase\.commit\.enable"):
                await producer.prepare_transaction()

    async def test_calls_raise_the_errors_that_are_set(self) -> None:
        async with MockProducer(**self.TWO_PHASES) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            producer.errors.prepare_transaction = TimeoutException("as set")
            with pytest.raises(TimeoutException, match="as set"):
                await producer.prepare_transaction()
            producer.errors.prepare_transaction = None
            state = await producer.prepare_transaction()
            producer.errors.complete_transaction = TimeoutException("as set")
            with pytest.raises(TimeoutException, match="as set"):
                await producer.complete_transaction(state)
            producer.errors.complete_transaction = None
            assert await producer.complete_transaction(state)


async def test_a_fenced_producer_is_unusable() -> None:
    async with MockProducer(auto_complete=False, **TRANSACTIONAL) as producer:
        with pytest.raises(IllegalStateException, match="init_transactions"):
            producer.fence_producer()
        await producer.init_transactions()
        await producer.begin_transaction()
        pending = producer.send("t", b"1")
        producer.fence_producer()
        with pytest.raises(ProducerFencedException):
            await pending
        with pytest.raises(ProducerFencedException):
            _ = producer.send("t", b"2")
        for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(ProducerFencedException):
                await call()
        with pytest.raises(ProducerFencedException):
            await producer.send_offsets_to_transaction({TopicPartition("in", 0): 1}, "g")
        with pytest.raises(ProducerFencedException):
            producer.fence_producer()
    with pytest.raises(IllegalStateException, match="closed"):
        producer.fence_producer()


async def test_calls_that_the_state_does_not_allow() -> None:
    async with MockProducer(**TRANSACTIONAL) as producer:
        with pytest.raises(IllegalStateException, match="belong to a transaction"):
            _ = producer.send("t", b"1")
        for call in (producer.begin_transaction, producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(IllegalStateException, match="was not called"):
                await call()
        await producer.init_transactions()
        with pytest.raises(IllegalStateException, match="no transaction has begun"):
            await producer.init_transactions()
        for call in (producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(IllegalStateException, match="no transaction has begun"):
                await call()
        with pytest.raises(IllegalStateException):
            await producer.send_offsets_to_transaction({TopicPartition("in", 0): 1}, "g")
        await producer.begin_transaction()
        with pytest.raises(IllegalStateException, match="a transaction is open"):
            await producer.begin_transaction()
        with pytest.raises(IllegalArgumentException, match="it must be 0 to"):
            await producer.send_offsets_to_transaction({TopicPartition("in", 0): -1}, "g")
    assert not producer.transaction_in_flight  # close aborts it
    async with MockProducer() as producer:
        with pytest.raises(IllegalStateException, match=r"transactional\.id"):
            await producer.init_transactions()
        with pytest.raises(IllegalStateException, match="transactional_id="):
            producer.commit_count  # noqa: B018


@pytest.mark.parametrize(
    "call",
    [
        "init_transactions",
        "begin_transaction",
        "send_offsets_to_transaction",
        "commit_transaction",
        "abort_transaction",
    ],
)
async def test_transactional_calls_raise_the_errors_that_are_set(call: str) -> None:
    async with MockProducer(**TRANSACTIONAL) as producer:

        async def whole() -> None:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({TopicPartition("in", 0): 1}, "g")
            await (producer.abort_transaction() if call == "abort_transaction" else producer.commit_transaction())

        setattr(producer.errors, call, TimeoutException("as set"))
        with pytest.raises(TimeoutException, match="as set"):
            await whole()
        setattr(producer.errors, call, None)
        if producer.transaction_in_flight:
            await producer.abort_transaction()


async def test_a_closed_one_makes_no_transactional_calls() -> None:
    async with MockProducer(**TRANSACTIONAL) as producer:
        await producer.init_transactions()
    for call in (
        producer.init_transactions,
        producer.begin_transaction,
        producer.commit_transaction,
        producer.abort_transaction,
    ):
        with pytest.raises(IllegalStateException, match="closed"):
            await call()
    with pytest.raises(IllegalStateException, match="closed"):
        await producer.send_offsets_to_transaction({TopicPartition("in", 0): 1}, "g")


async def test_an_error_that_is_set_has_the_outcome_of_a_record() -> None:
    async with MockProducer() as producer:
        producer.errors.send = TimeoutException("as set")
        with pytest.raises(TimeoutException) as raised:
            _ = await producer.enqueue("t", b"1", partition=0)
        assert isinstance(raised.value, DeliveryError)
        assert (raised.value.outcome, raised.value.topic_partition) == (Outcome.NOT_SENT, ("t", 0))
        producer.errors.send = IllegalStateException("as set")
        with pytest.raises(IllegalStateException) as misused:
            _ = producer.send("t", b"1")
        assert not isinstance(misused.value, DeliveryError)


async def test_a_client_instance_id_to_order() -> None:
    async with MockProducer() as producer:
        with pytest.raises(IllegalStateException, match="call set_client_instance_id first"):
            await producer.client_instance_id(1)
        producer.set_client_instance_id(wanted := UUID(int=7))
        assert await producer.client_instance_id(0) == wanted
        producer.errors.client_instance_id = TimeoutException("too late")
        with pytest.raises(TimeoutException, match="too late"):
            await producer.client_instance_id(1)
    async with MockProducer(enable_metrics_push=False) as producer:
        producer.set_client_instance_id(UUID(int=7))
        with pytest.raises(IllegalStateException, match=r"enable\.metrics\.push is false"):
            await producer.client_instance_id(1)


async def test_figures_to_order() -> None:
    async with MockProducer(client_id="me") as producer:
        assert producer.health() == []
        producer.set_mock_metrics("buffer-available-bytes", 0.0)
        topic = MetricName("record-error-total", "producer-topic-metrics", (("client-id", "me"), ("topic", "t")))
        producer.set_mock_metrics(topic, 3.0)
        found = producer.metrics()
        assert (found["buffer-available-bytes"], found.topic("t")["record-error-total"]) == (0.0, 3.0)
        assert [finding.metric for finding in producer.health()] == ["buffer-available-bytes"]
        await producer.send("t", b"1")
        assert producer.metrics()["record-delivered-total"] == 1


# Units


async def test_units_are_committed_as_a_whole() -> None:
    async with MockProducer(**TRANSACTIONAL) as producer:
        await producer.init_transactions()
        async with producer.unit() as unit:
            await unit.send("t", b"1")
            await unit.send("u", b"2")
            await unit.send_offsets({TopicPartition("in", 0): 3}, "g")
            assert producer.history == []
        assert values(producer.history) == [b"1", b"2"]
        assert [metadata.topic for metadata in unit.result()] == ["t", "u"]
        assert producer.consumer_group_offsets_history == [{"g": {TopicPartition("in", 0): OffsetAndMetadata(3)}}]
        assert producer.commit_count == 1


async def test_a_unit_that_is_dropped_is_not_in_the_history() -> None:
    async with MockProducer(**TRANSACTIONAL) as producer:
        await producer.init_transactions()
        unit = producer.unit()
        await unit.__aenter__()
        await unit.send("t", b"1")
        await unit.__aexit__(ZeroDivisionError, ZeroDivisionError(), None)
        assert (unit.outcome, producer.history, producer.commit_count) == (Outcome.NOT_SENT, [], 0)


async def test_a_send_that_is_made_to_fail_is_not_in_the_unit() -> None:
    async with MockProducer(**TRANSACTIONAL) as producer:
        await producer.init_transactions()
        async with producer.unit() as unit:
            producer.errors.send = RecordTooLargeException("large")
            with pytest.raises(RecordTooLargeException, match="large"):
                await unit.send("t", b"1")
            producer.errors.send = None
            await unit.send("t", b"2")
        assert values(producer.history) == [b"2"]


async def test_a_commit_that_is_made_to_fail_fails_the_units() -> None:
    async with MockProducer(**TRANSACTIONAL) as producer:
        await producer.init_transactions()
        producer.errors.commit_transaction = NotEnoughReplicasException("too few")
        unit = producer.unit()
        with pytest.raises(NotEnoughReplicasException, match="too few"):
            async with unit:
                await unit.send("t", b"1")
        assert (unit.outcome, producer.history) == (Outcome.NOT_SENT, [])
        producer.errors.commit_transaction = None
        async with producer.unit() as unit:
            await unit.send("t", b"2")
        assert values(producer.history) == [b"2"]
