from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioproducer.errors import (
    IllegalArgumentException,
    IllegalStateException,
    KafkaError,
    RecordTooLargeException,
    SerializationException,
)
from aioproducer.producer.accumulator.batch_limits import DOUBTED_AFTER
from aioproducer.producer.accumulator.compression_ratio import CompressionRatioEstimator
from aioproducer.producer.accumulator.murmur2 import partition_for_key
from aioproducer.producer.accumulator.record_accumulator import ASK_EVERY, RecordAccumulator
from aioproducer.producer.batches.producer_batch import AHEAD, BATCH_COST, OPEN_RECORD_COST, ProducerBatch
from aioproducer.producer.delivery.produce_result import HEADER_COST, INTERCEPTED_COST
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from tests.producer.simulations.standing_loop import NOW_MS, Accumulation


def records_of(batch: ProducerBatch) -> list[Any]:
    """The records of a batch, read back."""
    batch.freeze()
    header = encode_batch_header(
        batch.records, count=batch.count, base_timestamp=batch.base_timestamp, max_timestamp=batch.max_timestamp
    )
    return list(RecordBatch(header + batch.records).records())


def partition_of(delivery: Any) -> int:
    partition: int = delivery._result.partition
    return partition


# What cannot be appended now


def test_an_unknown_topic_and_one_without_partitions_have_to_wait() -> None:
    here = Accumulation()
    assert here.append("unknown") is None
    here.add_topic("empty", 0)
    assert here.append("empty") is None


def test_a_partition_that_does_not_exist_has_to_wait() -> None:
    here = Accumulation()
    here.add_topic("t", 3)
    assert here.append("t", partition=3) is None
    assert here.append("t", partition=2**31 - 1) is None
    assert partition_of(here.append("t", partition=2)) == 2
    here.add_topic("t", 4)
    assert partition_of(here.append("t", partition=3)) == 3


def test_no_memory_has_to_be_waited_for() -> None:
    here = Accumulation(memory=4500, batch_size=2000, batch_initial_size=2000 - BATCH_COST)
    here.add_topic("t", 3)
    assert here.append("t", partition=0) is not None
    assert here.append("t", partition=1) is not None
    assert here.append("t", partition=2) is None
    assert here.append("t", partition=0) is not None  # its batch has room
    assert here.pool.available == 500
    here.pool.deallocate(2000)
    assert here.append("t", partition=2) is not None


def test_nothing_is_appended_before_the_start() -> None:
    here = Accumulation()
    here.add_topic("t", 1)
    fresh = RecordAccumulator(
        here.pool,
        here.loop,
        lambda: NOW_MS,
        batch_size=1000,
        max_request_size=1000,
        ignore_keys=False,
    )
    fresh.topics = here.accumulator.topics
    assert fresh.append("t", b"v", None, None, None, None) is None
    fresh.detour = False
    assert fresh.append("t", b"v", None, None, None, None) is not None


def test_a_newcomer_waits_while_others_wait() -> None:
    here = Accumulation()
    here.add_topic("t", 1)
    here.accumulator.detour = True
    assert here.append() is None
    assert here.opened == []
    assert here.accumulator.place("t", b"v", None, None, None, None, 100) is not None


# What never can be appended


class Bytes:
    def __bytes__(self) -> bytes:
        return b"not asked for"


WRONG: list[tuple[type[KafkaError], dict[str, Any]]] = [
    *[(SerializationException, {what: wrong}) for what in ("key", "value") for wrong in ("text", 5, ["v"], Bytes())],
    (SerializationException, {"headers": 5}),
    (SerializationException, {"headers": "name"}),
    (SerializationException, {"headers": {"name": b"value"}}),
    (SerializationException, {"headers": iter([("name", b"value")])}),
    (SerializationException, {"headers": [("name", b"value"), "name"]}),
    (SerializationException, {"headers": [["name", b"value"]]}),
    (SerializationException, {"headers": [("name",)]}),
    (SerializationException, {"headers": [("name", b"value", b"more")]}),
    (SerializationException, {"headers": [(b"name", b"value")]}),
    (SerializationException, {"headers": [(None, b"value")]}),
    (SerializationException, {"headers": [("name", "value")]}),
    (SerializationException, {"headers": [("name", 5)]}),
    (SerializationException, {"headers": [("\ud800", b"half a character")]}),
    *[(IllegalArgumentException, {"partition": wrong}) for wrong in (-1, 2**31, 2**70, 1.0, "1", b"1")],
    *[(IllegalArgumentException, {"timestamp_ms": wrong}) for wrong in (-1, 2**63, 2**70, 1.5, "now")],
    (RecordTooLargeException, {"value": bytes(5000)}),
    (RecordTooLargeException, {"key": bytes(5000)}),
    (RecordTooLargeException, {"headers": [("n" * 2500, bytes(2500))]}),
]


@pytest.mark.parametrize("detour", [False, True])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("error", "record"), WRONG, ids=[f"{wrong!r:.40}" for _, wrong in WRONG])
def test_an_invalid_record_is_refused_at_once_and_leaves_nothing(
    error: type[KafkaError], record: dict[str, Any], known: bool, detour: bool
) -> None:
    """With an unknown topic, too: what is parked must never fail when its time comes."""
    here = Accumulation()
    if known:
        here.add_topic("t", 3)
    here.accumulator.detour = detour
    with pytest.raises(error):
        here.append("t", **record)
    assert here.opened == []
    assert here.closed == []
    assert here.pool.available == here.pool.total


def test_an_invalid_record_leaves_the_open_batch_unchanged() -> None:
    here = Accumulation()
    here.add_topic("t", 1)
    assert here.append(value=b"good") is not None
    for _, record in WRONG:
        with pytest.raises(KafkaError):
            here.append("t", **record)
    assert here.append(value=b"good, too") is not None
    (batch,) = here.opened
    assert [record.value for record in records_of(batch)] == [b"good", b"good, too"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            {"value": "text"},
            "the value is of type str; it must be bytes or None, or the producer needs a value_serializer",
        ),
        ({"key": 5}, "the key is of type int; it must be bytes or None, or the producer needs a key_serializer"),
        ({"headers": [("trace", 7)]}, "the value of header 'trace' is of type int; it must be bytes or None"),
        ({"partition": -2}, "partition is -2"),
        ({"timestamp_ms": 1e12}, "timestamp_ms is 1000000000000.0"),
        ({"value": bytes(6000)}, r"takes up to 60\d\d bytes, more than max.request.size=5000"),
    ],
)
def test_it_says_what_is_wrong(record: dict[str, Any], message: str) -> None:
    with pytest.raises(KafkaError, match=message):
        Accumulation().append("t", **record)


def test_a_record_larger_than_all_memory_is_never_waited_for() -> None:
    here = Accumulation(memory=1000, batch_size=100)
    with pytest.raises(RecordTooLargeException, match=r"buffer\.memory=1000"):
        here.append("unknown", bytes(1000))


def test_the_largest_record_that_is_allowed_is_allowed() -> None:
    here = Accumulation()
    here.add_topic("t", 1)
    largest = 5000 - here.accumulator.record_size(bytes(4900), None, None) + 4900
    with pytest.raises(RecordTooLargeException):
        here.append("t", bytes(largest + 1))
    assert here.append("t", bytes(largest)) is not None
    assert here.pool.available == here.pool.total - 5000 - OPEN_RECORD_COST - BATCH_COST


def test_a_record_may_take_all_memory() -> None:
    here = Accumulation(memory=1000, batch_size=100)
    here.add_topic("t", 1)
    largest = 1000 - here.accumulator.record_size(bytes(900), None, None) + 900
    assert here.append("t", bytes(largest)) is not None
    assert here.pool.available == 0


# Keys and values


@pytest.mark.parametrize("data", [None, b"", b"data", bytearray(b"data"), memoryview(b"_data_")[1:-1]])
def test_keys_and_values_are_bytes_like_or_none(data: Any) -> None:
    here = Accumulation()
    here.add_topic("t", 1)
    assert here.append(key=data, value=data) is not None
    if isinstance(data, bytearray):
        data[:] = b"reused"  # after send the caller may do with it what it likes
        data = b"data"
    expected = None if data is None else bytes(data)
    (record,) = records_of(here.opened[0])
    assert (record.key, record.value) == (expected, expected)


def test_timestamp_is_now_unless_given() -> None:
    here = Accumulation()
    here.add_topic("t", 1)
    here.append()
    here.now_ms += 5
    here.append()
    here.append(timestamp_ms=0)
    here.append(timestamp_ms=2**63 - 1)
    timestamps = [record.timestamp_ms for record in records_of(here.opened[0])]
    assert timestamps == [NOW_MS, NOW_MS + 5, 0, 2**63 - 1]


def test_headers_may_be_any_sequence_of_pairs() -> None:
    here = Accumulation()
    here.add_topic("t", 1)
    pairs = [("name", b"value"), ("name", None), ("", b""), ("ключ", b"\xff")]
    for headers in (pairs, tuple(pairs), deque(pairs), [], ()):
        assert here.append(headers=headers) is not None
    read = [list(record.headers) for record in records_of(here.opened[0])]
    assert read == [pairs, pairs, pairs, [], []]


# Partitions


@given(key=st.binary(max_size=20), partitions=st.integers(1, 12))
def test_a_key_decides_the_partition_even_without_a_leader(key: bytes, partitions: int) -> None:
    here = Accumulation(memory=10**5)
    here.add_topic("t", partitions, leader=-1)
    for _ in range(3):
        assert partition_of(here.append(key=key)) == partition_for_key(key, partitions)


def test_a_key_moves_when_there_are_more_partitions() -> None:
    here = Accumulation(memory=10**5)
    key = next(key for key in map(b"%d".__mod__, range(100)) if partition_for_key(key, 3) != partition_for_key(key, 4))
    for partitions in (3, 4):
        here.add_topic("t", partitions)
        assert partition_of(here.append(key=key)) == partition_for_key(key, partitions)


def test_the_partition_given_beats_the_key() -> None:
    here = Accumulation(memory=10**5)
    here.add_topic("t", 8)
    for partition in range(8):
        assert partition_of(here.append(key=b"key", partition=partition)) == partition


def test_keys_may_be_ignored() -> None:
    here = Accumulation(memory=10**6, ignore_keys=True)
    here.add_topic("t", 8)
    assert len({partition_of(here.append(key=b"key", value=bytes(400))) for _ in range(200)}) == 8


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(0, 300), min_size=1, max_size=150))
def test_without_a_key_one_partition_gets_a_batch_before_the_next_one_has_its_turn(seed: int, sizes: list[int]) -> None:
    here = Accumulation(memory=10**6, seed=seed)
    here.add_topic("t", 4)
    runs: list[tuple[int, int]] = []
    for size in sizes:
        partition = partition_of(here.append(value=bytes(size)))
        charged = here.accumulator.record_size(bytes(size), None, None) - BATCH_OVERHEAD
        if runs and runs[-1][0] == partition:
            runs[-1] = (partition, runs[-1][1] + charged)
        else:
            runs.append((partition, charged))
    assert all(charged >= 1000 for _, charged in runs[:-1])  # more, where it drew the same again
    assert all(batch.size() + BATCH_OVERHEAD <= 1000 for batch in here.opened)


def test_it_stays_with_its_partition_when_batches_leave_early() -> None:
    here = Accumulation(memory=10**6)
    queues = here.add_topic("t", 4)
    partitions = []
    for _ in range(40):
        partition = partition_of(here.append(value=bytes(100)))
        here.accumulator.close_batch(queues[partition])  # it lingered
        partitions.append(partition)
    changes = [index for index in range(1, 40) if partitions[index] != partitions[index - 1]]
    assert changes
    assert all(later - earlier >= 6 for earlier, later in zip([0, *changes], changes, strict=False))


def test_the_next_partition_may_have_an_open_batch_and_it_may_be_full() -> None:
    here = Accumulation(memory=10**6)
    here.add_topic("t", 2)
    for partition in (0, 1):
        here.append(partition=partition, value=bytes(850))
    sent = Counter(partition_of(here.append(value=bytes(200))) for _ in range(100))
    assert set(sent) == {0, 1}
    assert all(batch.size() + BATCH_OVERHEAD <= 1000 for batch in here.opened)
    assert sum(batch.count for batch in here.opened) == 102


def test_without_a_key_partitions_without_a_leader_get_nothing() -> None:
    here = Accumulation(memory=10**6)
    queues = here.add_topic("t", 6)
    for queue in queues[::2]:
        queue.leader = -1
    here.accumulator.topics["t"].partitioner.leaders_changed()
    sent = Counter(partition_of(here.append(value=bytes(400))) for _ in range(300))
    assert set(sent) == {1, 3, 5}
    assert min(sent.values()) > 50


def test_without_any_leader_all_partitions_take_part() -> None:
    here = Accumulation(memory=10**6)
    here.add_topic("t", 3, leader=-1)
    assert {partition_of(here.append(value=bytes(900))) for _ in range(100)} == {0, 1, 2}


def test_topics_have_sticky_partitions_of_their_own() -> None:
    here = Accumulation(memory=10**6, seed=3)
    for topic in "abcdefgh":
        here.add_topic(topic, 50)
    assert len({partition_of(here.append(topic)) for topic in "abcdefgh"}) > 3


# Batches


def test_a_record_larger_than_a_batch_has_one_to_itself() -> None:
    here = Accumulation()
    (queue,) = here.add_topic("t", 1)
    here.append(value=bytes(10))
    here.append(value=bytes(3000))
    here.append(value=bytes(10))
    first, large, last = here.opened
    assert [batch.count for batch in here.opened] == [1, 1, 1]
    assert list(queue.batches) == [first, large]
    assert queue.open is last
    assert (first.allocated, large.allocated) == (first.cost(), large.cost())
    assert last.allocated == here.accumulator.record_size(bytes(10), None, None) + OPEN_RECORD_COST + BATCH_COST
    assert here.closed == [queue, queue]
    assert here.pool.available == here.pool.total - sum(batch.allocated for batch in here.opened)


def test_closing_takes_back_the_buffer_and_the_memory_that_is_left_over() -> None:
    here = Accumulation()
    (queue,) = here.add_topic("t", 1)
    here.append()
    queue.due = True
    buffer = here.opened[0].buffer
    here.accumulator.close_batch(queue)
    assert queue.open is None
    assert not queue.due
    here.accumulator.close_batch(queue)
    assert here.closed == [queue]
    assert here.pool.available == here.pool.total - here.opened[0].cost()
    assert here.opened[0].cost() == here.opened[0].size() + 16 + BATCH_COST
    here.append()
    assert here.opened[1].buffer is buffer


def test_a_full_batch_is_closed_even_if_there_is_no_memory_for_the_next() -> None:
    """So it can leave, and its memory come back."""
    here = Accumulation(memory=4500)
    (queue,) = here.add_topic("t", 1)
    here.append(value=bytes(800))
    assert here.append(value=bytes(800)) is None
    assert queue.open is None
    assert list(queue.batches) == here.opened
    assert here.append(value=bytes(800)) is None
    assert len(here.opened) == 1


def test_small_records_pay_for_what_is_kept_beside_them() -> None:
    here = Accumulation(memory=10**6, batch_size=16384, max_request_size=10**6)
    (queue,) = here.add_topic("t", 1)
    while not queue.batches:
        here.append(value=b"0123456789")
    (batch,) = queue.batches
    assert batch.size() > 16384 - 200  # full it is by its records alone
    assert batch.allocated == batch.cost() == batch.size() + 16 * batch.count + BATCH_COST
    assert here.pool.available == here.pool.total - batch.allocated - here.opened[1].allocated


def test_a_batch_that_cannot_pay_for_more_is_ready_and_stays_open() -> None:
    """So it can leave, and grows with what comes back before."""
    here = Accumulation(memory=20_000, batch_size=16384, max_request_size=10**6)
    (queue,) = here.add_topic("t", 1)
    appended = 0
    while here.append(value=b"0123456789") is not None:
        appended += 1
    batch = queue.open
    assert batch is not None
    assert batch.count == appended
    assert batch.size() < 16384 - 200
    assert batch.open_cost(100) > 20_000
    assert here.reached == [queue]
    assert here.append(value=b"0123456789") is None
    assert here.reached == [queue]  # once is enough
    here.pool.total += 1000
    here.pool.available += 1000
    assert here.append(value=b"0123456789") is not None
    assert queue.open is batch


def test_compressed_batches_are_fuller_and_pay_for_it() -> None:
    ratios = CompressionRatioEstimator()
    here = Accumulation(memory=10**6, batch_size=1000, max_request_size=10**6, ratios=ratios)
    (queue,) = here.add_topic("t", 1)
    while len(queue.batches) < 1:
        here.append(value=bytes(50))
    assert 750 < queue.batches[0].size() < 952  # 1000 / 1.05
    for _ in range(300):
        ratios.observe("t", 0.2)
    while len(queue.batches) < 4:
        here.append(value=bytes(50))
    fuller = queue.batches[3]
    assert 4560 < fuller.size() < 4761  # 1000 / 0.2 / 1.05
    assert 1000 - 200 < fuller.expected_size() <= 1000
    assert fuller.allocated == fuller.cost() > fuller.size()
    here.accumulator.max_request_size = 2000
    assert here.accumulator.limit("t", 1000) == 2000


def test_records_kept_for_interceptors_are_charged_to_the_pool() -> None:
    here = Accumulation(memory=100_000, batch_size=4000)
    [queue] = here.add_topic("t", 1)
    headers = (("h", bytes(50)),)
    for _ in range(20):
        delivery = here.append(headers=headers)
        delivery._result.intercept(delivery._index, headers)
    [batch] = here.opened
    assert batch.result.kept == 20 * (INTERCEPTED_COST + HEADER_COST + 50)
    here.append()
    assert batch.allocated >= batch.open_cost(0) - OPEN_RECORD_COST
    here.accumulator.close_batch(queue)
    assert batch.allocated == batch.cost() > batch.result.kept
    assert here.pool.available == here.pool.total - batch.allocated


def test_a_turn_is_asked_for_by_what_is_appended_whether_or_not_it_takes_new_memory() -> None:
    """Small records for open batches would otherwise hold the loop until these are full."""
    here = Accumulation(memory=10**8, batch_size=16_384, batch_initial_size=1024)
    here.add_topic("t", 1000)
    taken, asked = [], []
    for _ in range(5):
        turns, available = here.turns, here.pool.available
        for partition in range(1000):
            assert here.append(value=b"v", partition=partition) is not None
        asked.append(here.turns - turns)
        taken.append(available - here.pool.available)
    assert taken[0] > 0 == sum(taken[1:])
    assert min(asked) >= 1000 * BATCH_OVERHEAD // ASK_EVERY
    assert max(asked[1:]) <= 1000 * 100 // ASK_EVERY + 1


# Batches that grow (KIP-782)


def growing(**config: Any) -> Accumulation:
    """Batches are ready with 1,000 bytes, and grow to 4,000."""
    sizes: dict[str, Any] = {"batch_size": 1000, "batch_max_size": 4000, "max_request_size": 10**6}
    return Accumulation(**{"memory": 10**6, **sizes, **config})


def test_a_batch_that_is_ready_takes_more_until_it_leaves() -> None:
    here = growing()
    (queue,) = here.add_topic("t", 1)
    for _ in range(8):
        assert here.append(value=bytes(100)) is not None
    assert not queue.due  # it lingers
    for _ in range(12):
        assert here.append(value=bytes(100)) is not None
    assert queue.due
    assert here.reached == [queue]
    (batch,) = here.opened
    assert here.closed == []
    assert batch.count == 20
    assert here.accumulator.take_open(queue) is batch
    assert here.append(value=bytes(100)) is not None
    assert not queue.due
    assert [one.count for one in here.opened] == [20, 1]
    with pytest.raises(IllegalStateException, match="closed for appends"):
        batch.append(0, None, b"too late", None)


def test_a_batch_grows_to_batch_max_size() -> None:
    here = growing()
    (queue,) = here.add_topic("t", 1)
    while not queue.batches:
        assert here.append(value=bytes(100)) is not None
    (batch,) = queue.batches
    assert 4000 - 200 < batch.size() + BATCH_OVERHEAD <= 4000
    assert here.reached == here.closed == [queue]
    assert batch.allocated == batch.cost()


@pytest.mark.parametrize(("takes", "most"), [(0, 1000), (1000, 1000), (2500, 2500), (10_000, 4000)])
def test_a_batch_grows_to_what_the_line_takes(takes: int, most: int) -> None:
    here = growing()
    here.line_takes = takes
    (queue,) = here.add_topic("t", 1)
    while not queue.batches:
        assert here.append(value=bytes(100)) is not None
    assert most - 200 < queue.batches[0].size() + BATCH_OVERHEAD <= most


def test_a_batch_that_has_enough_does_not_grow() -> None:
    here = growing()
    here.enough = True
    (queue,) = here.add_topic("t", 1)
    while not queue.batches:
        assert here.append(value=bytes(100)) is not None
    assert 1000 - 200 < queue.batches[0].size() + BATCH_OVERHEAD <= 1000


@pytest.mark.parametrize(("refused", "taken", "most"), [(3000, 0, 1500), (3000, 2000, 2000), (1600, 0, 800)])
def test_a_batch_grows_to_what_its_topic_is_known_to_take(refused: int, taken: int, most: int) -> None:
    here = growing()
    (queue,) = here.add_topic("t", 1)
    here.accumulator.limits.taken("t", taken)
    here.accumulator.limits.refused("t", refused, here.loop.time())
    while len(queue.batches) < 2:
        assert here.append(value=bytes(100)) is not None
    assert all(most - 200 < batch.size() + BATCH_OVERHEAD <= most for batch in queue.batches)


@pytest.mark.parametrize("batch_max_size", [1000, 4000])
def test_one_batch_tries_whether_the_limit_was_raised(batch_max_size: int) -> None:
    here = growing(batch_max_size=batch_max_size)
    queues = here.add_topic("t", 2)
    limits = here.accumulator.limits
    limits.taken("t", 500)
    limits.refused("t", 600, here.loop.time())
    here.loop.now += DOUBTED_AFTER
    while any(len(queue.batches) < 2 for queue in queues):
        for partition in range(2):
            assert here.append(partition=partition, value=bytes(50)) is not None
    closed = [[batch.size() + BATCH_OVERHEAD for batch in queue.batches] for queue in queues]
    larger = min(1200, batch_max_size)
    trial = queues[0].batches[0]
    assert larger - 100 < closed[0].pop(0) <= larger
    assert max(map(max, closed)) <= 500
    assert trial.trial
    assert not here.accumulator.must_be_cut(trial)


def test_a_compressed_batch_grows_by_its_compressed_size() -> None:
    ratios = CompressionRatioEstimator()
    here = growing(ratios=ratios)
    (queue,) = here.add_topic("t", 1)
    for _ in range(300):
        ratios.observe("t", 0.5)
    while not queue.batches:
        assert here.append(value=bytes(100)) is not None
    assert 4000 - 100 < queue.batches[0].expected_size() + BATCH_OVERHEAD <= 4000 + BATCH_OVERHEAD


def test_the_next_batch_for_a_thread_does_not_grow_and_those_behind_it_do() -> None:
    """It is compressed while it waits; what comes behind has time to grow meanwhile."""
    here = growing(thread_bytes=500)
    (queue,) = here.add_topic("t", 1)
    while len(queue.batches) < 2:
        assert here.append(value=bytes(100)) is not None
    first, second = queue.batches
    assert first.size() < 1000
    assert second.size() > 3500


def test_memory_is_charged_as_a_batch_grows() -> None:
    here = growing(batch_initial_size=500)
    (queue,) = here.add_topic("t", 1)
    assert here.append(value=bytes(10)) is not None
    (batch,) = here.opened
    assert batch.allocated == BATCH_COST + 500
    charges = {batch.allocated}
    while not queue.batches:
        cost = batch.open_cost(200)
        assert here.append(value=bytes(10)) is not None
        assert batch.allocated <= cost + max(cost // 4, 500)
        assert here.pool.available == here.pool.total - sum(one.allocated for one in here.opened)
        charges.add(batch.allocated)
    assert 5 < len(charges) < 20


def test_a_batch_is_begun_with_what_is_left_of_memory() -> None:
    here = Accumulation(memory=3500, batch_size=1000, batch_initial_size=1000)
    here.add_topic("t", 2)
    assert here.append(partition=0) is not None
    assert here.pool.available == 3500 - BATCH_COST - 1000
    needed = here.accumulator.record_size(b"v", None, None) + OPEN_RECORD_COST + BATCH_COST
    assert here.pool.available < needed
    here.pool.total += 1000
    here.pool.available += 1000
    assert here.append(partition=1) is not None
    assert here.opened[1].allocated == needed


def test_thousands_of_partitions_have_open_batches_at_once() -> None:
    here = Accumulation(memory=32 << 20, batch_size=16384, batch_max_size=262144, batch_initial_size=1024)
    here.add_topic("t", 10_000)
    for partition in range(10_000):
        assert here.append(value=bytes(100), partition=partition) is not None
    for partition in range(10_000):
        assert here.append(value=bytes(100), partition=partition) is not None
    assert len(here.opened) == 10_000


def test_the_loop_gets_its_turns_by_the_memory_of_new_batches() -> None:
    here = Accumulation(memory=10**6, batch_size=5000)
    here.add_topic("t", 100)
    for number in range(300):
        assert here.append(partition=number % 100) is not None
    charged = here.pool.total - here.pool.available
    assert charged // ASK_EVERY - 1 <= here.turns <= (charged + 300 * 100) // ASK_EVERY  # and the records themselves


def test_a_stream_without_keys_leaves_a_batch_that_is_ready_for_the_next_partition() -> None:
    here = growing(seed=1, batch_max_size=100_000)
    here.add_topic("t", 4)
    for _ in range(400):
        assert here.append(value=bytes(100)) is not None
    assert len(here.opened) == 4  # all are ready and open, and grow in turn
    assert here.closed == []
    assert all(batch.count > 40 for batch in here.opened)


class AccumulatorMachine(RuleBasedStateMachine):
    """Records of two topics come in any way, batches leave at any time: all are there once, in order, and paid for."""

    @initialize(
        memory=st.integers(2000, 50_000),
        batch_size=st.sampled_from([1, 200, 1000]),
        grown=st.sampled_from([1, 2, 5]),
        initial=st.sampled_from([0, 100, 1000]),
    )
    def begin(self, memory: int, batch_size: int, grown: int, initial: int) -> None:
        self.most = batch_size * grown
        self.here = Accumulation(
            memory=memory,
            batch_size=batch_size,
            batch_max_size=self.most,
            batch_initial_size=initial,
            max_request_size=1500,
        )
        self.queues = [*self.here.add_topic("a", 3), *self.here.add_topic("b", 1)]
        self.sent: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        self.deliveries: list[tuple[bytes, Any]] = []
        self.finished: list[ProducerBatch] = []
        self.count = 0

    @rule(
        topic=st.sampled_from("ab"),
        key=st.none() | st.sampled_from([b"k1", b"k2", b"k3"]),
        partition=st.none() | st.integers(0, 3),
        size=st.sampled_from([0, 10, 100, 500, 1200]),
        headers=st.sampled_from([None, [("n", b"v" * 50)]]),
    )
    def append(self, topic: str, key: bytes | None, partition: int | None, size: int, headers: Any) -> None:
        self.count += 1
        value = b"%d:" % self.count + bytes(size)
        delivery = self.here.append(topic, value, key, partition=partition, headers=headers)
        if delivery is None:
            return
        if partition is not None:
            assert partition_of(delivery) == partition
        self.sent[topic, partition_of(delivery)].append(value)
        self.deliveries.append((value, delivery))

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        self.here.accumulator.close_batch(data.draw(st.sampled_from(self.queues)))

    @precondition(lambda self: any(queue.batches for queue in self.queues))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        queue = data.draw(st.sampled_from([queue for queue in self.queues if queue.batches]))
        batch = queue.batches.popleft()
        self.finished.append(batch)
        self.here.pool.deallocate(batch.allocated)

    @invariant()
    def memory_is_that_of_the_batches(self) -> None:
        held = [*(batch for queue in self.queues for batch in queue.batches)]
        held += [queue.open for queue in self.queues if queue.open is not None]
        assert self.here.pool.available == self.here.pool.total - sum(batch.allocated for batch in held)
        for batch in self.here.opened:
            assert batch.count > 0
            if batch in held:
                kept = batch.cost() if batch.buffer is None else batch.open_cost(0) - OPEN_RECORD_COST
                assert kept <= batch.allocated or batch.allocated == self.here.pool.total
                if batch.buffer is not None and batch.count > 1:
                    paid = kept + batch.largest
                    assert batch.allocated <= paid + max(paid // AHEAD, self.here.pool.initial_size)
            assert batch.count == 1 or batch.size() + BATCH_OVERHEAD <= self.most
        assert sum(queue.depth() for queue in self.queues) == len(held)

    def teardown(self) -> None:
        if not hasattr(self, "here"):
            return
        read: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        for batch in self.here.opened:
            where = (batch.result.topic, batch.result.partition)
            batch.freeze()
            assert batch.succeed(len(read[where]), -1)
            read[where] += [record.value for record in records_of(batch)]
        assert read == self.sent
        for value, delivery in self.deliveries:
            metadata = delivery.result()
            assert read[metadata.topic, metadata.partition][metadata.offset] == value


AccumulatorMachine.TestCase.settings = settings(max_examples=30, stateful_step_count=30)
TestAccumulator = AccumulatorMachine.TestCase
