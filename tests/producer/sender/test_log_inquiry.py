from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import DeliveryError, Outcome, TimeoutException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.sender.log_inquiry import is_in_log
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.describe_producers import ProducerState
from aioproducer.records.record_batch import RecordBatch
from aioproducer.testing.simulation.faults import truncation
from tests.producer.simulations.broker_model import Partition, Request, states_of
from tests.producer.simulations.standing_loop import Loop, make_batch
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer
from tests.support.scripted_broker import Exchange, Held, ScriptedCluster, Step, drop, edited, error, never
from tests.support.transactional import a_cluster, committed, transactional

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(30)]


def batch_of(first: int, count: int, *, epoch: int = 3) -> ProducerBatch:
    batch = make_batch(Loop(), records=count)
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 7, epoch, first
    return batch


# The rule


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=8), first=st.sampled_from([0, 2**31 - 10]), data=st.data()
)
def test_a_log_has_all_sequences_up_to_its_last(counts: list[int], first: int, data: st.DataObject) -> None:
    log, batches = Partition(), []
    for count in counts:
        batches.append(batch_of(first, count))
        first = (first + count) & 0x7FFFFFFF
    appended = data.draw(st.integers(1, len(batches)))
    for batch in batches[:appended]:
        request = Request(7, 3, int(batch.base_sequence), tuple(b"%d" % n for n in range(batch.count)))
        assert log.produce(request)[0] is ErrorCode.NONE
    assert [is_in_log(batch, states_of(log)) for batch in batches] == [
        number < appended for number in range(len(batches))
    ]


@pytest.mark.parametrize(
    ("epoch", "last", "there"),
    [
        (2, 100, False),  # the log has nothing of the batch's epoch
        (3, 9, False),
        (3, 11, None),  # it has a part of it, which no log can have
        (3, 12, True),
        (3, -1, None),
        (4, 100, None),  # what the log has of earlier epochs, nobody remembers
    ],
)
def test_by_epoch_and_last_sequence(epoch: int, last: int, there: bool | None) -> None:
    assert is_in_log(batch_of(10, 3), [ProducerState(6, 3, 100), ProducerState(7, epoch, last)]) is there


def test_a_log_that_does_not_know_the_producer_is_a_new_one() -> None:
    assert is_in_log(batch_of(10, 3), [ProducerState(6, 3, 100)]) is False


# End to end


async def ambiguous(cluster: ScriptedCluster, producer: Any, *, appended: bool) -> list[Any]:
    """Sends two records in a batch of which only the log can tell whether it is there; how they end."""
    cluster.broker.script(ApiKey.PRODUCE, drop(appended=appended), error(ErrorCode.MESSAGE_TOO_LARGE))
    if not appended:  # else it is out of order anyway
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
    deliveries = [producer.send("t", value) for value in (b"a", b"b")]
    return [await end_of(delivery) for delivery in deliveries]


@pytest.mark.parametrize("appended", [False, True])
async def test_the_leaders_answer_decides(*, appended: bool) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, linger_ms=5, retry_backoff_ms=1) as producer:
            _ = await producer.send("t", b"first")
            ended = await ambiguous(cluster, producer, appended=appended)
            assert [one.offset for one in ended] == ([-1, -1] if appended else [1, 2])
            assert producer.metrics()["record-delivered-total"] == 3
            assert all_memory_free(producer)
        assert cluster.values("t") == [b"first", b"a", b"b"]
        assert cluster.broker.count(ApiKey.DESCRIBE_PRODUCERS) == (2 if appended else 1)


def behind(count: int) -> Step:
    """The high watermark is so many records behind the end of the log."""

    def edit(response: Any) -> None:
        response.topics[0].partitions[0].offset -= count

    return edited(edit)


async def test_a_record_in_the_log_is_delivered_once_committed() -> None:
    """Another leader may lack what only this one has."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        held = Held()
        cluster.broker.script(ApiKey.LIST_OFFSETS, behind(1), behind(2), held)
        async with make_producer(cluster.bootstrap_servers, linger_ms=5, retry_backoff_ms=1) as producer:
            _ = await producer.send("t", b"first")
            ended = asyncio.create_task(ambiguous(cluster, producer, appended=True))
            await cluster.broker.until(lambda broker: bool(held.exchanges))
            assert producer.metrics()["record-delivered-total"] == 1
            held.release()
            assert [one.offset for one in await ended] == [-1, -1]
            assert producer.metrics()["record-delivered-total"] == 3
        assert cluster.values("t") == [b"first", b"a", b"b"]


async def test_a_leader_that_is_replaced_before_that_is_not_believed() -> None:
    """Its successor has none of it, so the records are sent again."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)

        async def cut_off(exchange: Exchange) -> None:
            """The end of the log is lost with its leader; the node is the leader of another epoch now."""
            truncation.cut_off(partition, list(partition.log.batches())[1:])
            partition.elect(-1)
            cluster.move_leader("t", 0, 0)
            exchange.reply(exchange.handle())

        partition = cluster.topic("t").partitions[0]
        cluster.broker.script(ApiKey.LIST_OFFSETS, behind(1), cut_off)
        async with make_producer(cluster.bootstrap_servers, linger_ms=5, retry_backoff_ms=1) as producer:
            _ = await producer.send("t", b"first")
            ended = await ambiguous(cluster, producer, appended=True)
            assert [one.offset for one in ended] == [1, 2]
        assert cluster.values("t") == [b"first", b"a", b"b"]


async def test_by_name_another_log_may_answer() -> None:
    """The leader's metadata shows another topic id than the producer's own: the producer learns of it first."""
    async with ScriptedCluster(newest_versions={ApiKey.PRODUCE: 12}) as cluster:
        cluster.create_topic("t", 1)

        async def create_anew(exchange: Exchange) -> None:
            """The topic is replaced; later batches of the producer are in its new log, and these two are not."""
            described = exchange.handle()
            cluster.delete_topic("t")
            cluster.create_topic("t", 1)
            exchange.reply(described)

        cluster.broker.script(ApiKey.DESCRIBE_PRODUCERS, create_anew)
        async with make_producer(cluster.bootstrap_servers, linger_ms=5, retry_backoff_ms=1) as producer:
            _ = await producer.send("t", b"first")
            ended = await ambiguous(cluster, producer, appended=True)
            assert [one.offset for one in ended] == [0, 1]
        assert cluster.values("t") == [b"a", b"b"]


@pytest.mark.parametrize("protocol", [1, 2])
async def test_in_a_transaction_too_a_broker_that_has_restarted_is_asked(protocol: int) -> None:
    """Its snapshot has the last batch only: it refuses those before, which are in the log."""

    async def unanswered(exchange: Exchange) -> None:
        exchange.handle()

    async with a_cluster(protocol) as cluster, transactional(cluster, batch_size=1, linger_ms=0) as producer:
        await producer.init_transactions()
        async with producer.transaction():
            _ = await producer.send("t", b"first", partition=0)
            cluster.broker.script(ApiKey.PRODUCE, *[unanswered] * 3)
            deliveries = [producer.send("t", value, partition=0) for value in (b"a", b"b", b"c")]
            await cluster.broker.received(ApiKey.PRODUCE, 4)
            cluster.log("t", 0).producer_state.retain(1)
            cluster.broker.drop_connections()
            ended = [await end_of(one) for one in deliveries]
        assert [getattr(one, "offset", one) for one in ended] == [-1, -1, 3]
        assert committed(cluster) == [b"first", b"a", b"b", b"c"]


def unauthorized(response: Any) -> None:
    response.topics[0].partitions[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("appended", [0, 1, 3])
async def test_without_the_permission_to_ask_the_last_batch_shows_where_those_before_it_are(appended: int) -> None:
    """A broker recognises the last batch that it has, after a restart as well, and refuses the others."""

    async def unanswered(exchange: Exchange) -> None:
        if values(exchange)[0] < b"abc"[appended:][:1] or appended == 3:
            exchange.handle()

    def values(exchange: Exchange) -> list[bytes]:
        records = exchange.request.topic_data[0].partition_data[0].records
        return [record.value or b"" for record in RecordBatch(bytearray(records)).records()]

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.DESCRIBE_PRODUCERS, edited(unauthorized))
        config = {"linger_ms": 0, "batch_size": 1, "retry_backoff_ms": 1}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"first")
            refused = [error(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)] * (3 if appended == 0 else 0)
            cluster.broker.script(ApiKey.PRODUCE, *[unanswered] * 3, *refused)
            deliveries = [producer.send("t", value) for value in (b"a", b"b", b"c")]
            await cluster.broker.received(ApiKey.PRODUCE, 4)
            cluster.log("t", 0).producer_state.retain(1)
            cluster.broker.drop_connections()
            ended = [await end_of(one) for one in deliveries]
            assert all_memory_free(producer)
        known = {0: [1, 2, 3], 1: [1, 2, 3], 3: [-1, -1, 3]}[appended]
        assert [getattr(one, "offset", one) for one in ended] == known
        assert cluster.values("t") == [b"first", b"a", b"b", b"c"]


async def test_if_nothing_shows_it_the_outcome_is_unknown() -> None:
    """The parts of a batch are not recognised."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.DESCRIBE_PRODUCERS, edited(unauthorized))
        async with make_producer(
            cluster.bootstrap_servers, linger_ms=5, retry_backoff_ms=1, request_timeout_ms=200
        ) as producer:
            _ = await producer.send("t", b"first")
            for one in await ambiguous(cluster, producer, appended=True):
                assert isinstance(one, DeliveryError)
                assert one.outcome is Outcome.UNKNOWN
            assert (await producer.send("t", b"next")).offset == 3
        assert cluster.values("t") == [b"first", b"a", b"b", b"next"]


def not_leader(response: Any) -> None:
    response.topics[0].partitions[0].error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_an_inquiry_is_repeated_until_it_is_answered() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        steps = [drop(), edited(not_leader), edited(lambda response: response.topics.clear())]
        cluster.broker.script(ApiKey.DESCRIBE_PRODUCERS, *steps)
        async with make_producer(cluster.bootstrap_servers, linger_ms=5, retry_backoff_ms=1) as producer:
            _ = await producer.send("t", b"first")
            ended = await ambiguous(cluster, producer, appended=True)
            assert [one.offset for one in ended] == [-1, -1]
        assert cluster.broker.count(ApiKey.DESCRIBE_PRODUCERS) == len(steps) + 2


async def test_the_batch_may_expire_before_there_is_one() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.DESCRIBE_PRODUCERS, never())
        config = {"linger_ms": 5, "retry_backoff_ms": 1, "delivery_timeout_ms": 400, "request_timeout_ms": 300}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"first")
            ended = asyncio.create_task(ambiguous(cluster, producer, appended=True))
            await cluster.broker.received(ApiKey.DESCRIBE_PRODUCERS)
            assert "DescribeProducers" in str(producer.explain("t", 0))
            for one in await ended:
                assert isinstance(one, TimeoutException)
                assert isinstance(one, DeliveryError)
                assert one.outcome is Outcome.UNKNOWN
            assert all_memory_free(producer)
        assert cluster.values("t") == [b"first", b"a", b"b"]
