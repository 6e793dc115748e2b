from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer import DeliveryError, KafkaProducer
from aioproducer.errors import (
    InvalidRecordException,
    Outcome,
    OutOfOrderSequenceException,
    RecordTooLargeException,
    TimeoutException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.producer.batches.producer_batch import NO_LIMIT, ProducerBatch
from aioproducer.producer.batches.split import MOST_CUTS, STEP, STEP_BYTES, Cut, cuts, may_split, target_size
from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.delivery.produce_result import ProduceResult
from aioproducer.protocol.api_key import ApiKey
from aioproducer.records.batch_layout import BATCH_OVERHEAD
from aioproducer.records.record_batch import RecordBatch
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.records.record_writer import record_size_upper_bound
from tests.producer.simulations.standing_loop import NOW_MS, Loop, make_batch
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer
from tests.support.scripted_broker import ScriptedCluster, answer, drop, edited, error
from tests.support.splitting import split
from tests.support.virtual_time import World, virtual

data = st.none() | st.binary(max_size=300)
headers = st.none() | st.lists(st.tuples(st.text(max_size=5), data), max_size=3)
records = st.lists(st.tuples(st.integers(0, 2**62), data, data, headers), min_size=2, max_size=40)


def read(batch: ProducerBatch, body: bytes) -> list[Any]:
    header = encode_batch_header(
        body, count=batch.count, base_timestamp=batch.base_timestamp, max_timestamp=batch.max_timestamp
    )
    return [tuple(record[1:]) for record in RecordBatch(header + body).records()]


def frozen(*sizes: int) -> ProducerBatch:
    """A closed batch of values of these sizes."""
    batch = make_batch(Loop(), created=5.0)
    for size in sizes:
        _ = batch.append(NOW_MS, None, bytes(size), None)
    batch.freeze()
    batch.attempts = 1
    return batch


# The rule


def test_several_records_too_large_are_split() -> None:
    assert may_split(ErrorCode.MESSAGE_TOO_LARGE, frozen(1, 1))
    assert may_split(ErrorCode.RECORD_LIST_TOO_LARGE, frozen(1, 1))  # for a segment


def test_one_record_cannot_be_split() -> None:
    assert not may_split(ErrorCode.MESSAGE_TOO_LARGE, frozen(1000))


def test_no_other_error_means_smaller_batches() -> None:
    codes = set(ErrorCode) - {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
    assert not any(may_split(code, frozen(1, 1)) for code in codes)


@pytest.mark.parametrize("arrives", [0.0, 5.0])
@pytest.mark.parametrize("maybe_appended", [False, True])
def test_parts_of_what_may_be_in_the_log_may_be_there(maybe_appended: bool, arrives: float) -> None:
    batch = frozen(1, 1, 1, 1)
    batch.maybe_appended, batch.arrives_until, batch.log = maybe_appended, arrives, 3
    for part in split(batch, batch.records, 150):
        assert (part.maybe_appended, part.arrives_until, part.reshaped) == (maybe_appended, arrives, maybe_appended)
        assert part.log == 3
        part.maybe_appended = False
        for smaller in split(part, part.records, 1):
            assert smaller.reshaped == maybe_appended


@pytest.mark.parametrize(("limit", "target"), [(16384, 1000), (600, 600)])
def test_children_have_at_most_half_of_it(limit: int, target: int) -> None:
    assert target_size(frozen(992, 991), limit) == target


# The children


@given(records=records, limit=st.integers(1, 2000), base_sequence=st.sampled_from([-1, 0, 2**31 - 3]))
def test_children_are_the_batch_in_order(records: list[Any], limit: int, base_sequence: int) -> None:
    batch = make_batch(Loop(), created=5.0)
    batch.base_timestamp = batch.max_timestamp = records[0][0]
    for record in records:
        _ = batch.append(*record)
    batch.freeze()
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 9, 3, base_sequence
    batch.attempts, batch.drain_order, batch.first = 2, 17, 100
    target = target_size(batch, limit)
    children = split(batch, batch.records, target)

    assert len(children) >= 2
    together = [record for child in children for record in read(child, child.records)]
    assert together == read(batch, batch.records)
    place = 0
    for child in children:
        assert child.first == 100 + place
        if base_sequence < 0:
            assert not child.has_sequence()
        else:
            assert child.base_sequence == (base_sequence + place) % 2**31
        place += child.count
        assert child.size() + 61 <= target or child.count == 1
        assert (child.producer_id, child.producer_epoch) == (9, 3)
        assert (child.created, child.drain_order, child.attempts) == (5.0, 17, 1)
        assert (child.buffer, child.in_flight, child.maybe_appended, child.retry_at) == (None, False, False, 0.0)


def by_the_record(batch: ProducerBatch, target: int) -> list[ProducerBatch]:
    """The children as they are when each record is read and appended like a new one."""
    children: list[ProducerBatch] = []
    child: ProducerBatch | None = None
    for timestamp_ms, key, value, some_headers in read(batch, batch.records):
        key_size, value_size = (-1 if one is None else len(one) for one in (key, value))
        size = BATCH_OVERHEAD + record_size_upper_bound(key_size, value_size, some_headers)
        if child is None or child.size() + size > target:
            child = make_batch(Loop())
            child.base_timestamp = child.max_timestamp = timestamp_ms
            children.append(child)
        child.largest = max(child.largest, size)
        _ = child.append(timestamp_ms, key, value, some_headers)
    for child in children:
        child.freeze()
    return children


@pytest.mark.parametrize(("records", "size"), [(3 * STEP + 7, 1), (STEP, 20), (20, STEP_BYTES // 3), (5, STEP_BYTES)])
@pytest.mark.parametrize("parts", [1.5, 2, 7])
def test_a_large_batch_is_cut_in_steps(records: int, size: int, parts: float) -> None:
    batch = make_batch(Loop())
    for number in range(records):
        _ = batch.append(NOW_MS + number, None, b"%d" % number + bytes(size), None)
    batch.freeze()
    target = int(int(batch.size()) / parts)
    cut = Cut(batch, lambda: batch.records, target)
    steps = 1
    while not cut.step():
        steps += 1
    assert steps >= max(records // STEP, records * size // (STEP_BYTES + size))
    children, expected = cut.children(), by_the_record(batch, target)
    assert [(child.records, child.sizes) for child in children] == [(child.records, child.sizes) for child in expected]


def test_what_happens_to_a_batch_while_it_is_cut_happens_to_its_parts() -> None:
    batch = frozen(1, 1, 1, 1)
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 9, 3, 100
    cut = Cut(batch, lambda: batch.records, 1)
    assert not cut.step()
    batch.producer_epoch, batch.base_sequence, batch.maybe_appended = 4, 0, True
    while not cut.step():
        pass
    children = cut.children()
    assert [child.base_sequence for child in children] == [0, 1, 2, 3]
    assert {(child.producer_epoch, child.maybe_appended) for child in children} == {(4, True)}


lasting = st.integers(0, 2**62) | st.integers(NOW_MS - 9000, NOW_MS + 9000)
large = data | st.integers(8100, 8250).map(bytes)


@given(
    records=st.lists(st.tuples(lasting, large, large, headers), min_size=2, max_size=40)
    | st.just([(5, None, b"", None)] * 300),
    target=st.integers(1, 20_000),
)
def test_children_are_byte_for_byte_what_their_records_would_be_as_new_ones(records: list[Any], target: int) -> None:
    batch = make_batch(Loop())
    batch.base_timestamp = batch.max_timestamp = records[0][0]
    for record in records:
        _ = batch.append(*record)
    batch.freeze()
    children, expected = split(batch, batch.records, target), by_the_record(batch, target)
    assert [child.records for child in children] == [child.records for child in expected]
    for child, other in zip(children, expected, strict=True):
        assert child.sizes == other.sizes
        assert (child.count, child.largest, child.written) == (other.count, other.largest, other.written)
        assert (child.base_timestamp, child.max_timestamp) == (other.base_timestamp, other.max_timestamp)


@given(sizes=st.lists(st.integers(0, 2000), min_size=2, max_size=60))
def test_splitting_comes_to_an_end(sizes: list[int]) -> None:
    generation, depth = [frozen(*sizes)], 0
    while any(batch.count > 1 for batch in generation):
        children = []
        for batch in generation:
            if batch.count > 1:
                children += split(batch, batch.records, target_size(batch, 16384))
        generation, depth = children, depth + 1
    assert depth <= sum(sizes).bit_length() + 10


def test_the_metadata_of_a_child_is_that_of_its_records() -> None:
    batch = make_batch(Loop())
    _ = batch.append(NOW_MS, b"k", b"one", None)
    _ = batch.append(NOW_MS + 7, None, b"second", None)
    batch.freeze()
    batch.attempts = 1
    first, second = split(batch, batch.records, 1)
    assert second.succeed(70, -1)
    result: ProduceResult = second.result
    metadata = result.metadata(0)
    assert (metadata.offset, metadata.timestamp_ms, metadata.serialized_value_size) == (70, NOW_MS + 7, 6)
    assert metadata.serialized_key_size == -1
    assert first.result.state == 0


# End to end

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(30)]

MODES: list[dict[str, Any]] = [
    {},
    {"enable_idempotence": False, "acks": "1", "max_in_flight_requests_per_connection": 1},
]
UNORDERED: list[dict[str, Any]] = [
    {"enable_idempotence": False},
    {"enable_idempotence": False, "acks": "1"},
]
"""Nobody keeps the order of what is under way together, as Kafka says of max.in.flight.requests.per.connection."""


async def send_all(producer: KafkaProducer, values: list[bytes]) -> list[int]:
    """Sends them to one partition, waits for the end of all, and gives the offsets they have."""
    deliveries = [await producer.enqueue("t", value, timestamp_ms=NOW_MS + n) for n, value in enumerate(values)]
    told: list[int] = []

    def tell(number: int) -> Callable[[Delivery], None]:
        return lambda _: told.append(number)

    for number, delivery in enumerate(deliveries):
        delivery.add_done_callback(tell(number))
    await producer.flush()
    assert all(delivery.done() for delivery in deliveries), "flush waits for the children"
    for number, delivery in enumerate(deliveries):
        metadata = delivery.result()
        assert metadata.timestamp_ms == NOW_MS + number
        assert metadata.serialized_value_size == len(values[number])
    assert sorted(told) == list(range(len(values)))
    assert all_memory_free(producer)
    return [delivery.result().offset for delivery in deliveries]


@pytest.mark.parametrize("mode", [*MODES, *UNORDERED])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_batches_too_large_for_the_topic(codec: str, mode: dict[str, Any]) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"max.message.bytes": 700})
        config = {"compression_type": codec, "linger_ms": 2, **mode}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            values = [b"%d:" % n + bytes((n * 7919 + i * i * 31) % 251 for i in range(n % 90)) for n in range(300)]
            offsets = await send_all(producer, values)
            assert producer.metrics()["batch-split-total"] > 0
        log = list(cluster.log("t").batches())
        found = [record.value for batch in log for record in batch.records()]
        assert [found[offset] for offset in offsets] == values
        assert len(found) == len(values)
        if mode not in UNORDERED:
            assert found == values
        assert max(batch.size_in_bytes for batch in log) <= 700
        assert {str(batch.codec) for batch in log} == {codec}


async def test_a_record_too_large_by_itself_fails_and_the_others_arrive() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"max.message.bytes": 500})
        async with make_producer(cluster.bootstrap_servers, linger_ms=20) as producer:
            sizes = [10, 600, 20, 30, 700, 40]
            deliveries = [producer.send("t", bytes(size)) for size in sizes]
            ended = [await end_of(delivery) for delivery in deliveries]
            for size, one in zip(sizes, ended, strict=True):
                if size < 500:
                    assert not isinstance(one, DeliveryError)
                else:
                    assert isinstance(one, RecordTooLargeException)
                    assert isinstance(one, DeliveryError)
                    assert one.outcome is Outcome.NOT_SENT
            assert [len(value or b"") for value in cluster.values("t")] == [10, 20, 30, 40]
            assert (await producer.send("t", b"and on")).offset == 4
            assert all_memory_free(producer)


@pytest.mark.parametrize("retries", [0, 1])
async def test_no_attempt_is_counted(retries: int) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"max.message.bytes": 200})
        config = {"enable_idempotence": False, "retries": retries, "linger_ms": 5}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            offsets = await send_all(producer, [b"%d:" % n + bytes(50) for n in range(64)])
            assert sorted(offsets) == list(range(64))
            assert producer.metrics()["record-retry-total"] == 0


@pytest.mark.parametrize("trouble", [drop(), drop(appended=True), error(ErrorCode.NOT_ENOUGH_REPLICAS)])
async def test_children_are_tried_again_with_the_same_bytes(trouble: Any) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"max.message.bytes": 400})
        async with make_producer(cluster.bootstrap_servers, linger_ms=5) as producer:
            cluster.broker.script(ApiKey.PRODUCE, answer, answer, trouble, trouble)
            assert await send_all(producer, [b"%d:" % n + bytes(50) for n in range(30)]) == list(range(30))
        sent = [
            bytes(partition.records)
            for request in cluster.broker.sent(ApiKey.PRODUCE)
            for topic in request.topic_data
            for partition in topic.partition_data
        ]
        by_sequence: dict[tuple[int, int], set[bytes]] = {}
        for data in sent:
            batch = RecordBatch(data)
            by_sequence.setdefault((batch.base_sequence, batch.count), set()).add(data)
        assert max(map(len, by_sequence.values())) == 1
        assert len(sent) > len(by_sequence), "nothing was tried again"


@pytest.mark.parametrize("trouble", [drop(), error(ErrorCode.NOT_LEADER_OR_FOLLOWER)])
async def test_a_batch_that_an_earlier_attempt_may_have_appended_is_split(trouble: Any) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"max.message.bytes": 400})
        async with make_producer(cluster.bootstrap_servers, linger_ms=5) as producer:
            await producer.send("t", b"0:")
            cluster.broker.script(ApiKey.PRODUCE, trouble)
            assert await send_all(producer, [b"%d:" % n + bytes(50) for n in range(30)]) == list(range(1, 31))


@pytest.mark.parametrize("may_ask", [False, True])
async def test_parts_of_a_batch_that_is_in_the_log_are_not_appended_again(*, may_ask: bool) -> None:
    """A broker checks the size before it looks for a duplicate; how far its log has come it tells whoever may read."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, drop(appended=True), error(ErrorCode.MESSAGE_TOO_LARGE))
        if not may_ask:
            cluster.broker.always(ApiKey.DESCRIBE_PRODUCERS, edited(unauthorized))
        async with make_producer(cluster.bootstrap_servers, linger_ms=5, retry_backoff_ms=1) as producer:
            values = [b"%d:" % n + bytes(50) for n in range(6)]
            deliveries = [producer.send("t", value) for value in values]
            ended = [await end_of(delivery) for delivery in deliveries]
            if may_ask:
                assert [delivery.result().offset for delivery in deliveries] == [-1] * 6  # nobody says where
            else:
                assert all(isinstance(one, OutOfOrderSequenceException) for one in ended)
                assert {delivery.outcome for delivery in deliveries} == {Outcome.UNKNOWN}
            assert (await producer.send("t", b"next")).offset == 6
            assert all_memory_free(producer)
        assert cluster.values("t") == [*values, b"next"]


def unauthorized(response: Any) -> None:
    response.topics[0].partitions[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_a_split_is_logged_once_per_topic(caplog: pytest.LogCaptureFixture) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"max.message.bytes": 300})
        async with make_producer(cluster.bootstrap_servers, linger_ms=5) as producer:
            for _ in range(3):
                _ = [producer.send("t", bytes(100)) for _ in range(10)]
                await producer.flush()
    warnings = [record.message for record in caplog.records if "too large" in record.message]
    assert len(warnings) == 1
    assert "t-0: a batch of 10 records" in warnings[0]
    assert "max.message.bytes" in warnings[0]


@virtual
async def test_the_time_of_each_child_is_accounted_for_on_its_own(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1, configs={"max.message.bytes": 700})
        async with KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            linger_ms=5,
            delivery_timeout_ms=10_000,
            request_timeout_ms=5000,
        ) as producer:
            _ = await producer.send("t", b"before")
            cluster.broker.script(ApiKey.PRODUCE, answer)
            cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS))
            ended = [await end_of(one) for one in [producer.send("t", bytes(400)) for _ in range(2)]]
        refused = 0
        for one in ended:
            assert isinstance(one, TimeoutException)
            spent = {entry.cause: entry for entry in one.ledger}
            assert sum(entry.seconds for entry in one.ledger) == pytest.approx(10.0, abs=0.01)
            assert spent["MESSAGE_TOO_LARGE"].count == 1
            refused += spent["NOT_ENOUGH_REPLICAS"].count if "NOT_ENOUGH_REPLICAS" in spent else 0
        # Without the record before them, and the batch that was split.
        assert refused == len(cluster.broker.sent(ApiKey.PRODUCE)) - 2


# Records that are refused


@pytest.mark.parametrize(
    ("refused", "where"),
    [
        ([], []),
        ([0], [1]),
        ([9], [9]),
        ([3], [3, 4]),
        ([5, 3, 4], [3, 6]),
        ([0, 1, 5, 9], [2, 5, 6, 9]),
        (range(10), []),
        ([-1, 10], []),
        ([-1, 2, 10], [2, 3]),
    ],
)
def test_a_batch_is_cut_between_good_and_refused_records(refused: list[int], where: list[int]) -> None:
    batch = frozen(*[1] * 10)
    assert cuts(batch, refused) == where
    children = split(batch, batch.records, NO_LIMIT, where)
    places = [0, *where, 10]
    assert [child.count for child in children] == [after - before for before, after in pairwise(places)]
    assert [child.first for child in children] == places[:-1]


def test_a_batch_with_too_many_cuts_fails_as_a_whole() -> None:
    batch = frozen(*[1] * 1000)
    assert len(cuts(batch, range(0, MOST_CUTS, 2))) == MOST_CUTS - 1
    assert cuts(batch, range(0, MOST_CUTS + 2, 2)) == []


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("codec", ["none", "gzip"])
async def test_records_beside_refused_ones_are_delivered_in_order(codec: str, idempotent: bool) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.alter_topic_configs("t", {"cleanup.policy": "compact"})
        async with make_producer(
            cluster.bootstrap_servers,
            linger_ms=20,
            compression_type=codec,
            enable_idempotence=idempotent,
            max_in_flight_requests_per_connection=5 if idempotent else 1,
        ) as producer:
            keys = [None if number % 7 in (2, 3) else b"k" for number in range(200)]
            sent = []
            for number, key in enumerate(keys):
                sent.append(producer.send("t", b"%d" % number, key=key))
                if number % 50 == 49:
                    await asyncio.sleep(0.03)
            ends = [await end_of(delivery) for delivery in sent]
        assert [isinstance(end, InvalidRecordException) for end in ends] == [key is None for key in keys]
        assert cluster.values("t") == [b"%d" % number for number, key in enumerate(keys) if key is not None]
