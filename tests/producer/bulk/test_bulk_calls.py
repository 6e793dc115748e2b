from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from aioproducer import ProducerRecord
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalArgumentException, IllegalStateException
from aioproducer.producer.accumulator.murmur2 import partition_for_key
from tests.support.producing import make_producer
from tests.support.scripted_broker import ScriptedCluster


@pytest.mark.parametrize("topic", [None, "", b"t", 5, "a\ud800"])
async def test_a_topic_is_a_name(topic: Any) -> None:
    async with make_producer("127.0.0.1:1") as producer:
        with pytest.raises(IllegalArgumentException, match="the topic is "):
            await producer.send_many(topic, [b"v"])


async def test_columns_are_checked_before_anything_is_sent() -> None:
    async with make_producer("127.0.0.1:1") as producer:
        with pytest.raises(IllegalArgumentException, match="values has 2, keys has 1"):
            await producer.send_many("t", [b"1", b"2"], keys=[b"k"])
        with pytest.raises(IllegalArgumentException, match="values is of type bytes; it must be a list"):
            await producer.send_many("t", b"one value")


async def test_only_where_the_producer_lives_and_while_it_does() -> None:
    producer = make_producer("127.0.0.1:1")
    with pytest.raises(IllegalStateException, match="not started"):
        await producer.send_many("t", [])
    await producer.start()

    def elsewhere() -> None:
        with pytest.raises(IllegalStateException, match="another event loop"):
            asyncio.run(producer.send_many("t", []))

    await asyncio.to_thread(elsewhere)
    await producer.close()
    with pytest.raises(IllegalStateException, match="closed"):
        await producer.send_many("t", [])


async def test_a_table_is_sent_row_by_row_without_serializers() -> None:
    pa = pytest.importorskip("pyarrow")
    async with ScriptedCluster(1) as cluster:
        cluster.create_topic("t", 3)
        async with make_producer(cluster.bootstrap_servers, value_serializer=str.encode, batch_size=2000) as producer:
            table = pa.table({"id": [f"{number % 7}" for number in range(3000)], "text": map(str, range(3000))})
            result = await producer.send_table("t", table, value="text", key="id")
        assert (result.count, result.delivered, result.errors) == (3000, 3000, [])
        seen: list[int] = []
        for partition in cluster.topic("t").partitions:
            records = [record for batch in partition.log.batches() for record in batch.records()]
            numbers = [int(record.value or b"") for record in records]
            assert numbers == sorted(numbers)
            assert all(record.key == b"%d" % (number % 7) for number, record in zip(numbers, records, strict=True))
            assert {partition_for_key(record.key or b"", 3) for record in records} <= {partition.index}
            seen += numbers
        assert sorted(seen) == list(range(3000))


async def test_interceptors_and_the_partitioner_see_every_row() -> None:
    pa = pytest.importorskip("pyarrow")
    seen: list[ProducerRecord] = []

    def intercept(record: ProducerRecord) -> ProducerRecord:
        seen.append(record)
        return record._replace(headers=[("seen", None)])

    def last(topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, partitions: Any) -> int:
        return len(partitions) - 1

    async with ScriptedCluster(1) as cluster:
        cluster.create_topic("t", 3)
        async with make_producer(
            cluster.bootstrap_servers, interceptor_classes=[intercept], partitioner_class=last
        ) as producer:
            result = await producer.send_table("t", pa.table({"v": ["a", None]}), value="v")
        assert result.offsets["t", 2] == (0, 1, 2)
        assert [record.value for record in seen] == [b"a", None]


async def test_rows_that_can_never_be_sent_harm_no_other_wherever_they_come() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"v": ["0", "1", "2", "3"], "p": [-3, 0, -3, -1]})
    async with ScriptedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers) as producer:
            for _ in range(2):  # with the topic unknown, and known
                result = await producer.send_table("t", table, value="v", partition="p")
                assert [(index, str(error).partition(":")[0]) for index, error in result.errors] == [
                    (0, "row 0, column 'p'"),
                    (2, "row 2, column 'p'"),
                ]
                assert result.delivered == 2


async def test_an_error_of_a_stream_is_raised_after_the_rows_before_it() -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"v": ["a"] * 100})

    def batches() -> Iterator[Any]:
        yield batch
        raise LookupError("no more")

    async with ScriptedCluster(1) as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers) as producer:
            with pytest.raises(Exception, match=r"no more") as caught:
                await producer.send_table("t", pa.RecordBatchReader.from_batches(batch.schema, batches()), value="v")
            note = "before it 100 records had been sent: <BulkResult count=100 delivered=100 failed=0>"
            assert caught.value.__notes__ == [note]


class TestAsynchronousTables:
    """``send_table`` of what has to be waited for."""

    async def test_rows_are_numbered_through(self) -> None:
        pa = pytest.importorskip("pyarrow")

        async def tables() -> AsyncIterator[Any]:
            yield pa.record_batch({"v": ["a", "b"], "p": [0, 0]})
            yield pa.table({"v": pa.array([], pa.string()), "p": pa.array([], pa.int32())})
            await asyncio.sleep(0)
            yield pa.table({"p": [0, -5], "v": pa.array([b"c", b"d"], pa.large_binary())})

        async with ScriptedCluster(1) as cluster:
            cluster.create_topic("t", 1)
            async with make_producer(cluster.bootstrap_servers) as producer:
                result = await producer.send_table("t", tables(), value="v", partition="p")
            assert [record.value for record in cluster.log("t").records()] == [b"a", b"b", b"c"]
        assert (result.count, result.delivered) == (4, 3)
        assert [(index, str(error).partition(":")[0]) for index, error in result.errors] == [(3, "row 3, column 'p'")]

    async def test_nothing_is_read_ahead_of_the_room_for_it(self) -> None:
        pa = pytest.importorskip("pyarrow")
        asked = 0
        second = asyncio.Event()

        async def tables() -> AsyncIterator[Any]:
            nonlocal asked
            for _ in range(8):
                asked += 1
                if asked == 2:
                    second.set()
                yield pa.record_batch({"v": [b"x" * 1000] * 40})

        async with EmbeddedCluster(1) as cluster:
            cluster.create_topic("t", 1)
            async with make_producer(cluster.bootstrap_servers, buffer_memory=65536) as producer:
                await producer.partitions_for("t")
                await cluster.stop_node(0)
                sending = asyncio.ensure_future(producer.send_table("t", tables(), value="v"))
                await second.wait()
                for _ in range(20):
                    await asyncio.sleep(0)
                assert asked == 2, "the second table has no room yet, so nobody asks for the third"
                await cluster.start_node(0)
                result = await sending
        assert (result.count, result.delivered, asked) == (320, 320, 8)

    @pytest.mark.parametrize("broken", ["raises", "no table", "other columns"])
    async def test_an_error_comes_after_the_rows_before_it(self, broken: str) -> None:
        pa = pytest.importorskip("pyarrow")

        async def tables() -> AsyncIterator[Any]:
            yield pa.record_batch({"v": ["a"] * 100})
            if broken == "raises":
                raise LookupError("no more")
            yield ["b"] if broken == "no table" else pa.record_batch({"w": ["b"]})

        async with ScriptedCluster(1) as cluster:
            cluster.create_topic("t", 1)
            async with make_producer(cluster.bootstrap_servers) as producer:
                with pytest.raises(Exception, match=r"no more|must be something with|no such column") as caught:
                    await producer.send_table("t", tables(), value="v")
        note = "before it 100 records had been sent: <BulkResult count=100 delivered=100 failed=0>"
        assert caught.value.__notes__ == [note]
