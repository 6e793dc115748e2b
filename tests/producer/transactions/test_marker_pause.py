"""The pause before a transaction's first records: how it is learnt, and what it saves."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer import KafkaProducer
from aioproducer.errors import TransactionAbortedException
from aioproducer.producer.producer import core_of
from aioproducer.producer.transactions.marker_pause import LONGEST, MEMORY, STEP, MarkerPause
from aioproducer.producer.transactions.transaction_manager import TransactionManager
from aioproducer.protocol.api_key import ApiKey
from aioproducer.types import ConsumerGroupMetadata, TopicPartition
from tests.support.scripted_broker import Exchange, Step, answer
from tests.support.transactional import a_cluster, committed, transactional
from tests.support.virtual_time import World, virtual

PRODUCE_TAKES = 0.001
RETRY = 0.02
"""Seconds after which a broker asks the coordinator again (Kafka's default)."""


class Cluster:
    """Writes markers in ``markers`` seconds, and is asked by a producer that begins the next transaction at once.

    Timers of the producer's loop are late by ``late`` seconds.
    """

    def __init__(self, markers: float, *, takes: float = PRODUCE_TAKES, late: float = 0.001) -> None:
        self.markers = markers
        self.takes = takes
        self.pause = MarkerPause()
        self.now = 0.0
        self._late = late

    def transaction(self, *, later: float = 0.0, slower: float = 0.0) -> float:
        """One more of them, which begins ``later``; returns the seconds that its records waited and were under way."""
        ended = self.now
        self.pause.ended(ended)
        begins = ended + later
        left = self.pause.left(begins)
        sent = begins + left + self._late if left > 0 else begins
        self.now = sent + self.takes + slower + (RETRY if sent < ended + self.markers else 0.0)
        self.pause.answered(self.now)
        return self.now - begins

    def mean(self, transactions: int, *, later: float = 0.0) -> float:
        return sum(self.transaction(later=later) for _ in range(transactions)) / transactions


@given(st.floats(0.0001, 0.009), st.floats(0, 0.003))
def test_records_are_rarely_too_early_once_it_is_learnt(markers: float, late: float) -> None:
    cluster = Cluster(markers, late=late)
    cluster.mean(1000)
    assert cluster.mean(2000) <= markers + late + PRODUCE_TAKES + 3 * STEP


def test_there_is_none_where_markers_are_written_at_once() -> None:
    assert Cluster(0.0).mean(2000) == pytest.approx(PRODUCE_TAKES)


@pytest.mark.parametrize("before", [0.0, 0.0015, 0.0045, 0.05])
@pytest.mark.parametrize("after", [0.0, 0.0015, 0.0045, 0.05])
def test_it_follows_the_markers_time(before: float, after: float) -> None:
    cluster, like_it = Cluster(before), Cluster(after)
    cluster.mean(3000)
    like_it.mean(3000)
    cluster.markers = after
    cluster.mean(20_000)
    assert cluster.mean(3000) <= like_it.mean(3000) + 0.001


@pytest.mark.parametrize("markers", [0.013, 0.05, 1.0])
def test_where_the_longest_is_too_short_there_is_mostly_none(markers: float) -> None:
    cluster = Cluster(markers)
    cluster.mean(2000)
    assert cluster.mean(5000) <= 1.01 * (PRODUCE_TAKES + RETRY)


@pytest.mark.parametrize("takes", [0.0005, 0.02, 0.05, 0.3])
def test_slow_answers_are_not_a_reason_for_one(takes: float) -> None:
    cluster = Cluster(0.0, takes=takes)
    cluster.mean(2000)
    assert cluster.mean(3000) <= 1.02 * takes


@pytest.mark.parametrize(
    ("share", "slower"),
    [(0.005, 0.03), (0.01, 0.1), (0.05, 0.03), (1 / 12, 0.02), (1 / 3, 0.03), (1 / 3, 0.5), (0.5, 0.04)],
)
@pytest.mark.parametrize("seed", range(3))
def test_nor_are_answers_that_are_slow_now_and_then_or_on_one_broker(share: float, slower: float, seed: int) -> None:
    cluster, random = Cluster(0.0), Random(seed)
    slow = [slower * (random.random() < share) for _ in range(20_000)]
    mean = sum(cluster.transaction(slower=one) for one in slow) / len(slow)
    assert mean <= 1.04 * (PRODUCE_TAKES + sum(slow) / len(slow))


@pytest.mark.parametrize("period", [2, 3, 7, 20, 200])
def test_nor_those_that_are_slow_in_turn(period: int) -> None:
    cluster = Cluster(0.0)
    slow = [0.03 * (number // max(period // 2, 1) % 2) for number in range(20_000)]
    mean = sum(cluster.transaction(slower=one) for one in slow) / len(slow)
    assert mean <= 1.04 * (PRODUCE_TAKES + sum(slow) / len(slow))


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1])
def test_answers_that_are_slow_now_and_then_do_not_hide_what_it_saves(share: float) -> None:
    cluster, random = Cluster(0.0015), Random(1)
    cluster.mean(1000)
    mean = sum(cluster.transaction(slower=0.03 * (random.random() < share)) for _ in range(20_000)) / 20_000
    assert mean <= 0.0015 + 2 * STEP + PRODUCE_TAKES + 0.03 * share + 0.001


@given(st.lists(st.floats(0.03, 0.06), min_size=1, max_size=200))
def test_a_time_of_slow_answers_is_forgotten(times: list[float]) -> None:
    cluster = Cluster(0.0)
    for cluster.takes in times:
        cluster.transaction()
    cluster.takes = PRODUCE_TAKES
    cluster.mean(1000)
    assert cluster.mean(1000) == pytest.approx(PRODUCE_TAKES)


def test_a_transaction_that_begins_later_waits_for_less_or_not_at_all() -> None:
    cluster = Cluster(0.0045)
    cluster.mean(1000)
    cluster.mean(1000, later=0.003)
    assert cluster.mean(1000, later=0.003) <= 0.0045 - 0.003 + STEP + 0.001 + PRODUCE_TAKES + RETRY / 20
    assert cluster.mean(1000, later=0.006) == pytest.approx(PRODUCE_TAKES)
    assert cluster.mean(1000, later=10.0) == pytest.approx(PRODUCE_TAKES)


@pytest.mark.parametrize("longest", [0.0, 0.0005, 0.008, LONGEST])
@given(st.lists(st.tuples(st.floats(-60, 60), st.floats(-60, 60)), max_size=30))
def test_a_clock_that_jumps_breaks_nothing(longest: float, jumps: list[tuple[float, float]]) -> None:
    pause, now = MarkerPause(longest), 0.0
    for first, second in [*jumps, (0.008, 0.0), (0.009, 0.0)]:
        pause.ended(now)
        now += first
        assert pause.left(now) <= longest + 1e-9
        now += second
        pause.answered(now)


def _learnt() -> Cluster:
    """Records without a pause are too early, which it knows."""
    cluster = Cluster(0.0005, late=0.0)
    cluster.mean(2000)
    cluster.pause._next_trial = 1_000_000
    return cluster


def test_the_first_records_decide() -> None:
    pause = _learnt().pause
    pause.ended(1000.0)
    assert pause.left(1000.0) == pytest.approx(STEP)
    assert pause.left(1000.0004) == pytest.approx(STEP - 0.0004)
    assert pause.left(1000.0015) == pytest.approx(-0.0005)


def test_only_the_first_answer_counts() -> None:
    cluster = _learnt()
    for _ in range(1000):
        cluster.transaction()
        cluster.pause.answered(cluster.now + 0.05)
    assert cluster.mean(100) == pytest.approx(STEP + PRODUCE_TAKES)


def test_it_is_not_longer_than_its_longest() -> None:
    pause = MarkerPause(longest=0.002)
    longest = 0.0
    for number in range(100):
        pause.ended(number)
        longest = max(longest, pause.left(number))
        pause.answered(number + 0.05)
    assert longest == pytest.approx(0.002)


@given(st.lists(st.tuples(st.sampled_from(["ended", "left", "answered"]), st.floats(0, 0.1))))
def test_whatever_happens_it_is_short(events: list[tuple[str, float]]) -> None:
    pause, now = MarkerPause(), 0.0
    for what, took in events:
        now += took
        if what == "left":
            assert pause.left(now) <= LONGEST + 1e-9
        else:
            getattr(pause, what)(now)


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
        for number in range(600):
            async with producer.transaction():
                for partition in range(3):
                    _ = producer.send("t", b"%d" % number, partition=partition)
        assert sum(when > ends[300] for when in early) <= 30, "of 300"
        assert len(committed(cluster)) == 1800


def _always_pauses(producer: KafkaProducer) -> None:
    """Records wait as long as they may, whatever was learnt."""
    pause = _pause(producer)
    for delay in pause._delays:
        delay.mean, delay.weight, delay.tried = 0.05, MEMORY, pause._transaction
    pause._delays[-1].mean = 0.0
    pause._next_trial = 1_000_000


async def _one_then_a_pause(producer: KafkaProducer, value: bytes) -> None:
    """Commits a record; the next transaction begins with the longest pause."""
    async with producer.transaction():
        await producer.send("t", value, partition=0)
    _always_pauses(producer)


@pytest.mark.parametrize("protocol", [1, 2])
@virtual
async def test_partitions_wait_for_them_in_both_protocols(world: World, protocol: int) -> None:
    asks = ApiKey.PRODUCE if protocol == 2 else ApiKey.ADD_PARTITIONS_TO_TXN
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        loop = asyncio.get_running_loop()
        await _one_then_a_pause(producer, b"0")
        ended = loop.time()
        async with producer.transaction():
            _ = producer.send("t", b"1", partition=0)
            explained = str(producer.explain("t", 0))
            assert "has the markers of the last transaction written" in explained
            count = cluster.broker.count(asks)
            await asyncio.sleep(LONGEST / 2)
            _ = producer.send("t", b"2", partition=1)
            assert cluster.broker.count(asks) == count
        assert loop.time() >= ended + LONGEST
        assert cluster.broker.count(asks) <= count + 2
        assert committed(cluster) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("protocol", [1, 2])
@virtual
async def test_offsets_wait_for_them(world: World, protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        group = ConsumerGroupMetadata("g")
        for number in range(2):
            if number:
                _always_pauses(producer)
            began = asyncio.get_running_loop().time()
            async with producer.transaction():
                await producer.send_offsets_to_transaction({TopicPartition("t", 0): number}, group)
        assert asyncio.get_running_loop().time() >= began + LONGEST


@pytest.mark.parametrize("protocol", [1, 2])
@virtual
async def test_an_abort_during_it_waits_for_nothing(world: World, protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        loop = asyncio.get_running_loop()
        for number in range(3):
            await _one_then_a_pause(producer, b"%d" % number)
            began = loop.time()
            with contextlib.suppress(ZeroDivisionError):
                async with producer.transaction():
                    lost = producer.send("t", b"lost", partition=0)
                    raise ZeroDivisionError
            assert loop.time() - began < LONGEST / 2
            assert lost.exception() is not None
        async with producer.transaction():
            await producer.send("t", b"3", partition=0)
        assert committed(cluster) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("protocol", [1, 2])
@virtual
async def test_an_abort_during_it_gives_up_offsets_that_were_not_sent(world: World, protocol: int) -> None:
    async with a_cluster(protocol) as cluster, transactional(cluster) as producer:
        await producer.init_transactions()
        loop = asyncio.get_running_loop()
        await _one_then_a_pause(producer, b"0")
        await producer.begin_transaction()
        sending = producer.send_offsets_to_transaction({TopicPartition("t", 0): 1}, ConsumerGroupMetadata("g"))
        offsets = asyncio.create_task(sending)
        await asyncio.sleep(0)
        began = loop.time()
        await producer.abort_transaction()
        assert loop.time() - began < LONGEST / 2
        with pytest.raises(TransactionAbortedException):
            await offsets
        assert cluster.broker.count(ApiKey.TXN_OFFSET_COMMIT) == 0
        async with producer.transaction():
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 2}, ConsumerGroupMetadata("g"))
        assert cluster.broker.count(ApiKey.TXN_OFFSET_COMMIT) == 1


@pytest.mark.parametrize("protocol", [1, 2])
@virtual
async def test_records_that_live_shorter_do_not_expire_in_it(world: World, protocol: int) -> None:
    short: dict[str, Any] = {"delivery_timeout_ms": 50, "request_timeout_ms": 50, "linger_ms": 0}
    async with a_cluster(protocol) as cluster, transactional(cluster, **short) as producer:
        await producer.init_transactions()
        for number in range(3):
            await _one_then_a_pause(producer, b"%d" % number)
        assert committed(cluster) == [b"0", b"1", b"2"]
