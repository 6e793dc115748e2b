from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.error_code import ErrorCode
from aioproducer.errors import DeliveryError, Outcome, TimeoutException
from aioproducer.producer.accumulator.producer_batch import ProducerBatch
from aioproducer.producer.sender.log_inquiry import is_in_log
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.describe_producers import ProducerState
from tests.producer.broker_model import Partition, Request, states_of
from tests.producer.standing_loop import Loop, make_batch
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer
from tests.support.scripted_broker import ScriptedCluster, drop, edited, error, never

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
async def test_what_the_leader_says_decides(*, appended: bool) -> None:
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


def not_leader(response: Any) -> None:
    response.topics[0].partitions[0].error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_it_is_asked_until_there_is_an_answer() -> None:
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
