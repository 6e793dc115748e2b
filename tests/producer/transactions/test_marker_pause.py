"""The pause before a transaction's first records: how it is learnt, and what it saves."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer import KafkaProducer
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.producer import core_of
from aioproducer.producer.transactions.marker_pause import MOST, RARELY, REST, RETRY, STEP, MarkerPause
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.protocol.api_key import ApiKey
from aioproducer.types import ConsumerGroupMetadata, TopicPartition
from tests.producer.transactions.test_transaction_manager import refused
from tests.support.scripted_broker import Exchange, Step, answer
from tests.support.transactional import a_cluster, committed, transactional
from tests.support.virtual_time import World, virtual

END_TAKES = 0.001
PRODUCE_TAKES = 0.002


class Cluster:
    """Writes markers in ``markers`` seconds, and is asked by a producer that begins the next transaction at once."""

    def __init__(self, markers: float, pause: MarkerPause | None = None) -> None:
        self.markers = markers
        self.pause = pause or MarkerPause()
        self.now = 0.0

    def transaction(self, *, later: float = 0.0) -> bool:
        """One more of them, which begins ``later``; returns whether its records came too early."""
        self.pause.ended(END_TAKES, self.now)
        sent_at = max(self.now + later, self.pause.over_at())
        too_early = sent_at < self.now + self.markers
        took = PRODUCE_TAKES + (RETRY if too_early else 0.0)
        self.now = sent_at + took
        self.pause.answered(sent_at, self.now)
        return too_early

    def too_early(self, transactions: int) -> int:
        return sum(self.transaction() for _ in range(transactions))


@given(st.floats(0.0001, MOST - STEP))
def test_records_are_rarely_too_early_once_it_is_learnt(markers: float) -> None:
    cluster = Cluster(markers)
    assert cluster.too_early(100) <= MOST / STEP
    assert cluster.too_early(4 * RARELY) <= 5
    assert cluster.pause.length <= markers + STEP


def test_there_is_none_where_markers_are_written_at_once() -> None:
    cluster = Cluster(0.0)
    assert cluster.too_early(100) == 0
    assert cluster.pause.length == 0


def test_it_becomes_shorter_with_the_markers_time() -> None:
    cluster = Cluster(0.008)
    cluster.too_early(100)
    cluster.markers = 0.001
    assert cluster.too_early(20 * RARELY) <= 8
    assert cluster.pause.length < 0.001 + STEP


def test_where_the_longest_is_too_short_there_is_mostly_none() -> None:
    cluster = Cluster(MOST + STEP)
    count = 10 * REST
    before = cluster.now
    assert cluster.too_early(count) == count
    lost = cluster.now - before - count * (PRODUCE_TAKES + RETRY)
    assert lost < 0.03 * (cluster.now - before)


def test_a_transaction_that_begins_later_says_nothing() -> None:
    cluster = Cluster(0.001)
    cluster.transaction()
    assert cluster.pause.length == STEP
    for _ in range(RARELY):
        cluster.transaction(later=MOST + STEP)
    assert cluster.pause.length == STEP


def test_only_the_first_answer_of_a_transaction_counts() -> None:
    pause = MarkerPause()
    pause.ended(END_TAKES, 1.0)
    pause.answered(1.0, 1.0 + PRODUCE_TAKES)
    pause.answered(1.0, 1.0 + 10 * RETRY)
    assert pause.length == 0


def test_a_distant_broker_is_not_a_reason_for_one() -> None:
    pause = MarkerPause()
    for number in range(100):
        pause.ended(0.05, number)
        pause.answered(number, number + 0.055)
    assert pause.length == 0


@given(st.lists(st.tuples(st.sampled_from(["ended", "answered", "added", "refused"]), st.floats(0, 0.1))))
def test_it_is_never_longer_than_the_longest(events: list[tuple[str, float]]) -> None:
    pause, now = MarkerPause(), 0.0
    for what, took in events:
        began, now = now, now + took
        match what:
            case "ended":
                pause.ended(took, now)
            case "answered":
                pause.answered(began, now)
            case _:
                getattr(pause, what)(began)
        assert 0 <= pause.length <= MOST
        assert pause.over_at() <= now + MOST


def _pause(producer: KafkaProducer) -> MarkerPause:
    transactions = core_of(producer).transactions
    assert isinstance(transactions, TransactionManager)
    return transactions._coordinator.pause


def _markers_take(seconds: float, ends: list[float], early: list[float]) -> Step:
    """A broker that gets records too early asks the coordinator again after 20 ms; ``early`` has when."""

    async def step(exchange: Exchange) -> None:
        now = asyncio.get_running_loop().time()
        if ends and now < ends[-1] + seconds:
            early.append(now)
            await asyncio.sleep(RETRY)
        await answer(exchange)

    return step


@virtual
async def test_the_first_records_wait_for_the_markers_of_the_last_transaction(world: World) -> None:
    ends: list[float] = []
    early: list[float] = []

    async def end(exchange: Exchange) -> None:
        await answer(exchange)
        ends.append(asyncio.get_running_loop().time())

    async with a_cluster(2) as cluster, transactional(cluster) as producer:
        cluster.broker.always(ApiKey.END_TXN, end)
        cluster.broker.always(ApiKey.PRODUCE, _markers_take(0.006, ends, early))
        await producer.init_transactions()
        for number in range(120):
            async with producer.transaction():
                for partition in range(3):
                    _ = producer.send("t", b"%d" % number, partition=partition)
        assert 2 <= len(early) <= 12, "it takes some steps until the pause is long enough"
        assert early[-1] < ends[80]
        assert len(committed(cluster)) == 360


@virtual
async def test_partitions_wait_for_them_in_the_first_protocol(world: World) -> None:
    async with a_cluster(1) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        loop = asyncio.get_running_loop()
        async with producer.transaction():
            await producer.send("t", b"0", partition=0)
        cluster.broker.script(ApiKey.ADD_PARTITIONS_TO_TXN, refused(ErrorCode.CONCURRENT_TRANSACTIONS))
        async with producer.transaction():
            await producer.send("t", b"1", partition=0)
        ended = loop.time()
        async with producer.transaction():
            _ = producer.send("t", b"2", partition=0)
            explained = str(producer.explain("t", 0))
            assert "has the markers of the last transaction written" in explained
            count = cluster.broker.count(ApiKey.ADD_PARTITIONS_TO_TXN)
            await asyncio.sleep(STEP / 2)
            assert cluster.broker.count(ApiKey.ADD_PARTITIONS_TO_TXN) == count
        assert loop.time() >= ended + STEP
        assert committed(cluster) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("protocol", [1, 2])
@virtual
async def test_offsets_wait_for_them(world: World, protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        group = ConsumerGroupMetadata("g")
        pause = _pause(producer)
        async with producer.transaction():
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, group)
        assert pause.length == 0
        first = ApiKey.TXN_OFFSET_COMMIT if protocol == 2 else ApiKey.ADD_OFFSETS_TO_TXN
        cluster.broker.script(first, refused(ErrorCode.CONCURRENT_TRANSACTIONS))
        async with producer.transaction():
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 2}, group)
        assert pause.length == STEP
        pause.length = MOST
        began = asyncio.get_running_loop().time()
        async with producer.transaction():
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 3}, group)
        assert asyncio.get_running_loop().time() >= began + MOST


@pytest.mark.parametrize("protocol", [1, 2])
@virtual
async def test_an_abort_during_it_ends_as_ever(world: World, protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        for number in range(3):
            async with producer.transaction():
                await producer.send("t", b"%d" % number, partition=0)
            _pause(producer).length = MOST
            with contextlib.suppress(ZeroDivisionError):
                async with producer.transaction():
                    lost = producer.send("t", b"lost", partition=0)
                    raise ZeroDivisionError
            assert lost.exception() is not None
        async with producer.transaction():
            await producer.send("t", b"3", partition=0)
        assert committed(cluster) == [b"0", b"1", b"2", b"3"]
