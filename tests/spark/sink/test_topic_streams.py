"""Rows on their way to their topics, with the embedded broker and without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalArgumentException, RecordTooLargeException
from aioproducer.spark.sink import topic_streams
from aioproducer.spark.sink.topic_streams import SinkException, send_rows
from aioproducer.testing.simulation.listening import listen_on_network
from tests.support.producing import make_producer
from tests.support.virtual_time import World, virtual

pa = pytest.importorskip("pyarrow")

VALUE = {"value": "value"}
BOTH = {"value": "value", "topic": "topic"}


@asynccontextmanager
async def running(**more: Any) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(1, configs={"auto.create.topics.enable": "false"}, **more) as cluster:
        for topic in ("a", "b"):
            cluster.create_topic(topic, 1)
        yield cluster


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with running() as cluster:
        yield cluster


async def given(*batches: Any) -> AsyncGenerator[Any, None]:
    for batch in batches:
        yield batch


def valued(*values: Any) -> Any:
    return pa.record_batch({"value": pa.array(values, pa.string())})


def routed(*rows: tuple[str | None, Any]) -> Any:
    return pa.record_batch(
        {
            "topic": pa.array([topic for topic, _ in rows], pa.string()),
            "value": pa.array([value for _, value in rows], pa.string()),
        }
    )


def held(cluster: EmbeddedCluster, topic: str) -> list[bytes | None]:
    return [record.value for record in cluster.log(topic).records()]


async def test_one_topic_takes_every_row_in_order(cluster: EmbeddedCluster) -> None:
    async with make_producer(cluster.bootstrap_servers) as producer:
        batches = given(valued("1", None), valued(), valued("3"))
        assert await send_rows(producer, batches, VALUE, "a", "here") == 3
    assert held(cluster, "a") == [b"1", None, b"3"]


async def test_no_rows_are_no_records(cluster: EmbeddedCluster) -> None:
    async with make_producer(cluster.bootstrap_servers) as producer:
        assert await send_rows(producer, given(), VALUE, "a", "here") == 0
        assert await send_rows(producer, given(routed()), BOTH, None, "here") == 0


async def test_each_row_goes_to_the_topic_it_names_and_order_stays(cluster: EmbeddedCluster) -> None:
    first = [("ab"[number % 3 == 0], str(number)) for number in range(50)]
    second = [("b", str(number)) for number in range(50, 60)]
    third = [("ba"[number % 7 == 0], str(number)) for number in range(60, 90)]
    async with make_producer(cluster.bootstrap_servers) as producer:
        batches = given(routed(*first), routed(*second), routed(*third))
        assert await send_rows(producer, batches, BOTH, None, "here") == 90
    rows = [*first, *second, *third]
    for topic in ("a", "b"):
        assert held(cluster, topic) == [value.encode() for name, value in rows if name == topic]


async def test_the_option_goes_before_the_column(cluster: EmbeddedCluster) -> None:
    async with make_producer(cluster.bootstrap_servers) as producer:
        assert await send_rows(producer, given(routed(("b", "1"), (None, "2"))), VALUE, "a", "here") == 2
    assert held(cluster, "a") == [b"1", b"2"]


def as_text(*values: bytes | None) -> Any:
    """As Spark hands them over: it does not check that they are UTF-8."""
    return pa.array(values, pa.binary()).view(pa.string())


@pytest.mark.parametrize(
    ("topic", "why"), [(None, "is null"), (b"", "is empty"), (b"\xff\xfe", r"is b'\\xff\\xfe', which is not UTF-8")]
)
@pytest.mark.parametrize("others", [b"a", None])
async def test_a_row_without_a_usable_topic_is_named(
    cluster: EmbeddedCluster, topic: bytes | None, why: str, others: bytes | None
) -> None:
    bad = {"topic": as_text(b"a" if others else topic, topic), "value": ["3", "4"]}
    async with make_producer(cluster.bootstrap_servers) as producer:
        batches = given(routed(("a", "1"), ("b", "2")), pa.record_batch(bad))
        where = rf"^partition 5, row {3 if others else 2}: the topic {why}: leave such rows out, or set option"
        with pytest.raises(SinkException, match=where):
            await send_rows(producer, batches, BOTH, None, "partition 5")


def headers_of(*names: bytes, as_map: bool) -> Any:
    """One for each row."""
    ends, values = range(len(names) + 1), pa.array([b"x"] * len(names))
    if as_map:
        return pa.MapArray.from_arrays(list(ends), as_text(*names), values)
    return pa.ListArray.from_arrays(list(ends), pa.StructArray.from_arrays([as_text(*names), values], ["key", "value"]))


@pytest.mark.parametrize("as_map", [False, True])
async def test_a_row_whose_header_has_no_text_as_its_name_is_named(cluster: EmbeddedCluster, as_map: bool) -> None:
    batch = pa.record_batch({"value": ["1", "2", "3"], "headers": headers_of(b"k", b"\xff\xfe", b"l", as_map=as_map)})
    async with make_producer(cluster.bootstrap_servers) as producer:
        for _ in range(2):  # the first time the topic is unknown
            with pytest.raises(SinkException, match=r"partition 5, row 1, to topic 'a': .* 'headers': .* not UTF-8"):
                await send_rows(producer, given(batch), {**VALUE, "headers": "headers"}, "a", "partition 5")
    assert held(cluster, "a") == [b"1", b"3"] * 2


@pytest.mark.parametrize("routes", [False, True])
async def test_a_row_that_is_too_large_is_named_wherever_it_stands(cluster: EmbeddedCluster, routes: bool) -> None:
    large = "x" * 5000
    async with make_producer(cluster.bootstrap_servers, max_request_size=4000) as producer:
        if routes:
            rows = [("a", "0"), ("b", "1"), ("b", large), ("a", large), ("a", "4")]
            batches = given(routed(("a", "x"), ("b", "y"), ("a", "z")), routed(*rows))
            expected = r"partition 5, row 5, to topic 'b': RecordTooLargeException: column 'value' of 5000 bytes"
            sending = send_rows(producer, batches, BOTH, None, "partition 5")
        else:
            batches = given(valued("0", "1"), valued("2", large), valued(large))
            expected = r"partition 5, row 3, to topic 'a': RecordTooLargeException: column 'value' of 5000 bytes"
            sending = send_rows(producer, batches, VALUE, "a", "partition 5")
        with pytest.raises(SinkException, match=expected) as caught:
            await sending
    assert isinstance(caught.value.__cause__, RecordTooLargeException)


@virtual
async def test_an_unknown_topic_is_named(world: World) -> None:
    async with (
        running(listen=listen_on_network) as cluster,
        make_producer(cluster.bootstrap_servers, max_block_ms=100) as producer,
    ):
        with pytest.raises(SinkException, match=r"here, row 1, to topic 'c': .*'c'"):
            await send_rows(producer, given(routed(("a", "1"), ("c", "2"))), BOTH, None, "here")


@virtual
async def test_a_broker_that_is_down_is_named(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:
        servers = cluster.bootstrap_servers
        await cluster.stop_node(0)
        async with make_producer(servers, max_block_ms=100) as producer:
            with pytest.raises(SinkException, match=rf"here, row 0, to topic 'a': .*{servers}"):
                await send_rows(producer, given(valued("1")), VALUE, "a", "here")


@virtual
async def test_a_topic_that_is_deleted_meanwhile_is_named(world: World) -> None:
    async with running(listen=listen_on_network) as cluster:

        async def meanwhile() -> AsyncGenerator[Any, None]:
            yield valued("1")
            while not held(cluster, "a"):  # noqa: ASYNC110 - in virtual time
                await asyncio.sleep(0.01)
            cluster.delete_topic("a")
            yield valued("2")

        async with make_producer(cluster.bootstrap_servers) as producer:
            with pytest.raises(SinkException, match=r"here, row 1, to topic 'a': .*UNKNOWN_TOPIC_ID"):
                await send_rows(producer, meanwhile(), VALUE, "a", "here")


async def test_no_rows_are_requested_after_a_failure(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_streams, "FAIL_WITHIN", 0.0)
    closed = []

    async def endless() -> AsyncGenerator[Any, None]:
        try:
            yield valued("x" * 5000)
            while True:
                yield valued("1")
                await asyncio.sleep(0)
        finally:
            closed.append(True)

    async with make_producer(cluster.bootstrap_servers, max_request_size=4000) as producer:
        with pytest.raises(SinkException, match="row 0"):
            await send_rows(producer, endless(), VALUE, "a", "here")
    assert closed == [True]


async def test_an_error_of_the_rows_is_raised(cluster: EmbeddedCluster) -> None:
    async def broken() -> AsyncGenerator[Any, None]:
        yield valued("1")
        raise LookupError("a task before this one failed")

    async with make_producer(cluster.bootstrap_servers) as producer:
        with pytest.raises(LookupError, match="a task before this one failed"):
            await send_rows(producer, broken(), VALUE, "a", "here")


async def test_columns_that_will_not_do_are_refused(cluster: EmbeddedCluster) -> None:
    async with make_producer(cluster.bootstrap_servers) as producer:
        with pytest.raises(IllegalArgumentException, match="no such column"):
            await send_rows(producer, given(pa.record_batch({"other": ["x"]})), VALUE, "a", "here")


async def test_the_places_of_delivered_rows_are_forgotten(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a task remembers of rows that name their topics does not grow with them."""
    monkeypatch.setattr(topic_streams, "PORTION", 4)
    rows, held_bytes = 2000, []
    batch = routed(*[("ab"[number % 2], "x") for number in range(rows)])
    async with make_producer(cluster.bootstrap_servers) as producer:
        before = pa.total_allocated_bytes()

        async def many() -> AsyncGenerator[Any, None]:
            for _ in range(60):
                yield batch
                await producer.flush()
                held_bytes.append(pa.total_allocated_bytes() - before)

        assert await send_rows(producer, many(), BOTH, None, "here") == 60 * rows
    assert max(held_bytes) < 60 * rows * 4 / 2, "4 bytes are where a row stood"


async def test_a_row_that_fails_is_named_in_whatever_portion_it_is(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_streams, "PORTION", 2)
    portions = [routed(("a", str(number)), ("b", str(number))) for number in range(6)]
    large = routed(("a", "x"), ("b", "x" * 5000))
    async with make_producer(cluster.bootstrap_servers, max_request_size=4000) as producer:
        with pytest.raises(SinkException, match=r"here, row 7, to topic 'b': RecordTooLargeException"):
            await send_rows(producer, given(*portions[:3], large, *portions[3:], large), BOTH, None, "here")
    assert held(cluster, "a") == [b"0", b"1", b"2", b"x", b"3", b"4", b"5", b"x"]
    assert held(cluster, "b") == [b"%d" % number for number in range(6)]


async def test_rows_that_were_left_out_are_never_taken_for_written(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_streams, "FAIL_WITHIN", 0.0)
    async with make_producer(cluster.bootstrap_servers) as producer:
        monkeypatch.setattr(producer, "metrics", lambda: {"record-error-total": 1})
        with pytest.raises(SinkException, match="here: rows from 2 on were not sent"):
            await send_rows(producer, given(valued("1", "2"), valued("3")), VALUE, "a", "here")
    assert held(cluster, "a") == [b"1", b"2"]
