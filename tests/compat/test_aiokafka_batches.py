"""The drop-in class has the behaviour of aiokafka's batches."""

from __future__ import annotations

from typing import Any

import pytest

from aioproducer.compat.aiokafka import AIOKafkaProducer, errors
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.compat.clusters import a_cluster, make
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import error

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


async def test_a_batch_takes_records_up_to_its_size() -> None:
    async with a_cluster() as cluster, make(cluster, max_batch_size=10_000) as producer:
        batch = producer.create_batch()
        count = 0
        while (appended := batch.append(key=b"test key", value=b"test value", timestamp=None)) is not None:
            assert (appended.offset, appended.crc) == (count, None)
            count += 1
        assert batch.closed()
        assert batch.record_count() == count > 100
        assert 10_000 - appended_size(b"test key", b"test value") < batch.size() <= 10_000
        before = await producer.send_and_wait("t", b"before", partition=1)
        metadata = await (await producer.send_batch(batch, "t", partition=1))
        assert (metadata.partition, metadata.offset) == (1, before.offset + 1)
        assert cluster.values("t", 1) == [b"before", *[b"test value"] * count]


def appended_size(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + 9


async def test_serializers_make_the_bytes_of_a_batch() -> None:
    serializers: dict[str, Any] = {"key_serializer": str.encode, "value_serializer": lambda value: repr(value).encode()}
    async with a_cluster() as cluster, make(cluster, **serializers) as producer:
        batch = producer.create_batch()
        batch.append(key="first", value=1, timestamp=None)
        batch.append(key="second", value=2, timestamp=None)
        await (await producer.send_batch(batch, "t", partition=0))
        found = [(record.key, record.value) for record in cluster.log("t").records()]
        assert found == [(b"first", b"1"), (b"second", b"2")]


async def test_only_the_first_record_of_a_batch_may_be_too_large() -> None:
    producer = AIOKafkaProducer(max_batch_size=1000)
    batch = producer.create_batch()
    assert batch.append(key=None, value=bytes(1001), timestamp=None) is not None
    batch = producer.create_batch()
    assert batch.append(key=None, value=b"short", timestamp=None) is not None
    assert batch.append(key=None, value=bytes(1001), timestamp=None) is None
    assert batch.append(key=None, value=b"short", timestamp=None) is None, "it is closed"


async def test_a_batch_is_as_large_as_the_one_that_is_sent() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        batch = producer.create_batch()
        sizes = [batch.size()]
        for number in range(100):
            headers = [("name", b"v" * number), ("null", None)]
            appended = batch.append(key=None, value=bytes(number), timestamp=1_000_000 - number * 50, headers=headers)
            assert appended is not None
            sizes.append(appended.size)
        await (await producer.send_batch(batch, "t", partition=0))
        (sent,) = cluster.log("t").batches()
        assert sent.size_in_bytes == batch.size() == sum(sizes)


async def test_a_batch_without_records_is_not_sent() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        assert await (await producer.send_batch(producer.create_batch(), "t", partition=0)) is None
        assert cluster.broker.count(ApiKey.PRODUCE) == 0


async def test_a_batch_fails_with_its_first_error() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        batch = producer.create_batch()
        for number in range(3):
            batch.append(key=None, value=b"%d" % number, timestamp=None)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        future = await producer.send_batch(batch, "t", partition=0)
        with pytest.raises(errors.TopicAuthorizationFailedError):
            await future
