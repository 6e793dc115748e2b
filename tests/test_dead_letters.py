"""Records that cannot be delivered go to a topic, with the reason; never silently, and never in circles."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioproducer import DeliveryError, KafkaProducer, Outcome, ProducerRecord, TopicPartition
from aioproducer.broker import EmbeddedCluster
from aioproducer.dead_letters import DeadLetters
from aioproducer.errors import (
    IllegalArgumentException,
    IllegalStateException,
    RecordTooLargeException,
    TimeoutException,
)
from aioproducer.protocol.api_key import ApiKey
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import never
from tests.support.transactional import a_cluster, committed, transactional
from tests.support.virtual_time import World, virtual

pytestmark = pytest.mark.usefixtures("no_leaks")

WAYS = pytest.mark.parametrize("transactional_id", [None, "x"], ids=["plain", "in units"])


@asynccontextmanager
async def letters(transactional_id: str | None = None, **config: Any) -> AsyncIterator[tuple[EmbeddedCluster, Any]]:
    """A cluster with a topic that takes only small records, and its dead letters."""
    async with EmbeddedCluster() as cluster:
        cluster.create_topic("small", configs={"max.message.bytes": 500})
        cluster.create_topic("dead")
        given: dict[str, Any] = {} if transactional_id is None else {"transactional_id": transactional_id}
        producer: KafkaProducer[Any, Any]
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, **given, **config) as producer:
            if transactional_id is not None:
                await producer.init_transactions()
            yield cluster, DeadLetters(producer, "dead", most_attempts=2)


def dead(cluster: EmbeddedCluster) -> list[Any]:
    return [record for batch in cluster.log("dead").batches() if not batch.is_control for record in batch.records()]


def told(record: Any) -> dict[str, str]:
    """Its headers, without what they all begin with."""
    return {name.removeprefix("aioproducer.dead."): value.decode() for name, value in record.headers}


@WAYS
async def test_a_record_that_is_refused_goes_to_the_topic(
    transactional_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with letters(transactional_id) as (cluster, to):
        metadata = await to.send("small", b"fine")
        assert (metadata.topic, metadata.offset) == ("small", 0)
        with caplog.at_level(logging.WARNING, "aioproducer.dead_letters"):
            assert await to.send("small", b"x" * 600, key=b"k", headers=[("mine", b"1")], partition=0) is None
        (letter,) = dead(cluster)
        assert (letter.key, letter.value) == (b"k", b"x" * 600)
        headers = told(letter)
        assert "small" in headers.pop("message") or headers["error"] == "RecordTooLargeException"
        assert int(headers.pop("time")) > 0
        assert headers == {
            "mine": "1",
            "topic": "small",
            "partition": "0",
            "error": "RecordTooLargeException",
            "outcome": "not_sent",
            "attempts": "1",
            "deaths": "1",
        }
        assert "a record for 'small' became a dead letter in 'dead'" in caplog.text


@WAYS
async def test_a_record_that_has_died_twice_is_no_dead_letter_again(transactional_id: str | None) -> None:
    async with letters(transactional_id) as (cluster, to):
        await to.send("small", b"x" * 600)
        again = dead(cluster)[-1]
        await to.send("small", again.value, headers=again.headers)
        again = dead(cluster)[-1]
        assert told(again)["attempts"] == "2"
        with pytest.raises(RecordTooLargeException) as failed:
            await to.send("small", again.value, headers=again.headers)
        assert "it has died 2 times" in failed.value.__notes__[0]
        with pytest.raises(RecordTooLargeException) as failed:
            await to.put(ProducerRecord("dead", b"1"), RecordTooLargeException("large"))
        assert "because it is one" in failed.value.__notes__[0]
        assert len(dead(cluster)) == 2


@WAYS
async def test_an_unserializable_record_is_named(transactional_id: str | None) -> None:
    def only_bytes(value: Any) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError("not bytes")
        return value

    async with letters(transactional_id, value_serializer=only_bytes) as (cluster, to):
        assert await to.send("small", object(), key=b"k") is None
        (letter,) = dead(cluster)
        headers = told(letter)
        assert (letter.key, letter.value) == (None, None)
        assert headers["error"] == "SerializationException"
        assert headers["left-out"] == "key: bytes of 1 bytes, value: object"


@WAYS
async def test_what_the_topic_of_dead_letters_refuses_is_left_out(transactional_id: str | None) -> None:
    async with letters(transactional_id) as (cluster, to):
        for topic in ("bounded", "narrow"):
            cluster.create_topic(topic, configs={"max.message.bytes": 800, "message.timestamp.after.max.ms": 3_600_000})
        to = DeadLetters(to.producer, "narrow")
        future = 221_845_392_000_000
        assert await to.send("bounded", b"v", key=b"k", timestamp_ms=future) is None
        assert await to.send("bounded", b"v", headers=[("a", b"x" * 900), ("b", b"")]) is None
        assert await to.send("bounded", b"x" * 900, timestamp_ms=future) is None
        found = [record for batch in cluster.log("narrow").batches() for record in batch.records() if record.headers]
        assert [(letter.key, letter.value) for letter in found] == [(b"k", b"v"), (None, None), (None, None)]
        first, second, third = map(told, found)
        assert (first["timestamp"], first["error"]) == (str(future), "InvalidTimestampException")
        assert second["left-out"] == "2 headers"
        assert (third["timestamp"], third["left-out"]) == (str(future), "value: bytes of 900 bytes")


async def test_one_large_letter_of_a_unit_leaves_the_others_as_they_are() -> None:
    async with letters("x") as (cluster, to):
        cluster.create_topic("narrow", configs={"max.message.bytes": 1000})
        async with DeadLetters(to.producer, "narrow").unit() as unit:
            await unit.send("small", b"precious", key=b"k1")
            await unit.send("small", b"x" * 2000, key=b"k2")
        assert isinstance(unit.dead, RecordTooLargeException)
        batches = list(cluster.log("narrow").batches())
        found = [record for batch in batches if not batch.is_control for record in batch.records()][-2:]
        assert [(letter.key, letter.value) for letter in found] == [(b"k1", b"precious"), (None, None)]
        assert told(found[1])["left-out"] == "key: bytes of 2 bytes, value: bytes of 2000 bytes"


@WAYS
async def test_a_letter_that_cannot_be_delivered_is_not_lost_silently(transactional_id: str | None) -> None:
    async with letters(transactional_id, max_block_ms=100) as (cluster, to):
        cluster.delete_topic("dead")
        to = DeadLetters(to.producer, "bad name")
        with pytest.raises(RecordTooLargeException) as failed:
            await to.send("small", b"x" * 600)
        assert "its dead letter for 'bad name' was not delivered" in failed.value.__notes__[0]


async def test_misuse_has_no_dead_letter() -> None:
    async with letters() as (cluster, to):
        with pytest.raises(IllegalArgumentException, match="partition is -1"):
            await to.send("small", b"1", partition=-1)
        with pytest.raises(TypeError, match="no argument partitoin"):
            await to.send("small", b"1", partitoin=0)
        with pytest.raises(IllegalArgumentException, match="transactional producers only"):
            await to.put(ProducerRecord("small"), ValueError(), offsets={"g": {TopicPartition("in", 0): 1}})
        await to.producer.close()
        with pytest.raises(IllegalStateException):
            await to.send("small", b"1")
        assert dead(cluster) == []
        with pytest.raises(IllegalArgumentException, match="is empty"):
            DeadLetters(to.producer, "")
        with pytest.raises(IllegalArgumentException, match="1 or more"):
            DeadLetters(to.producer, "dead", most_attempts=0)


async def test_a_unit_that_fails_dies_as_a_whole_and_its_offsets_go_on() -> None:
    async with letters("x") as (cluster, to):
        cluster.create_topic("in")
        async with to.unit() as unit:
            await unit.send("in", b"fine")
            await unit.send("small", b"x" * 600)
            await unit.send_offsets({TopicPartition("in", 0): 8}, "g")
        assert isinstance(unit.dead, RecordTooLargeException)
        assert [told(letter)["topic"] for letter in dead(cluster)] == ["in", "small"]
        assert cluster.committed_offsets("g") == {TopicPartition("in", 0): 8}
        async with to.unit() as unit:
            await unit.send("small", b"fine")
        assert unit.dead is None
        with pytest.raises(ZeroDivisionError):
            await _fails(to)
        assert len(dead(cluster)) == 2


async def test_an_error_of_the_block_itself_makes_no_dead_letter() -> None:
    async with letters("x") as (cluster, to):

        async def with_a_unit_inside() -> None:
            async with to.unit() as unit:
                await unit.send("small", b"fine")
                async with to.producer.unit() as inner:
                    await inner.send("small", b"x" * 600)

        with pytest.raises(RecordTooLargeException):
            await with_a_unit_inside()
        assert dead(cluster) == []
        assert committed(cluster, "small") == []


@virtual
async def test_a_unit_that_may_be_committed_has_no_dead_letter(world: World) -> None:
    patience: dict[str, Any] = {"max_block_ms": 1000, "delivery_timeout_ms": 2000, "request_timeout_ms": 1000}
    async with a_cluster() as cluster, transactional(cluster, **patience) as producer:
        cluster.create_topic("dead")
        await producer.init_transactions()
        cluster.broker.always(ApiKey.END_TXN, never())
        to = DeadLetters(producer, "dead")
        with pytest.raises(TimeoutException) as failed:
            await to.send("t", b"maybe")
        assert isinstance(failed.value, DeliveryError)
        assert failed.value.outcome is Outcome.UNKNOWN
        assert dead(cluster) == []
        await producer.close(0)


@WAYS
async def test_a_record_that_was_read_keeps_its_bytes_whatever_the_serializers(transactional_id: str | None) -> None:
    config = {"value_serializer": Json(), "key_serializer": Json()}
    async with letters(transactional_id, **config) as (cluster, to):
        await to.put(ProducerRecord("small", b"not json", b"k", timestamp_ms=1_700_000_000_000), ValueError("no json"))
        assert await to.send("small", "x" * 600, key="k") is None
        read, sent = dead(cluster)
        assert (read.key, read.value) == (b"k", b"not json")
        assert (sent.key, sent.value) == (b'"k"', b'"' + b"x" * 600 + b'"')


async def test_a_record_may_be_tried_more_often_than_it_may_die() -> None:
    async with letters("x") as (cluster, to):
        await to.put(ProducerRecord("small", b"1"), ValueError(), attempts=6)
        again = dead(cluster)[-1]
        await to.put(ProducerRecord("small", b"1", headers=again.headers), ValueError(), attempts=6)
        again = dead(cluster)[-1]
        assert (told(again)["attempts"], told(again)["deaths"]) == ("6", "2")
        with pytest.raises(ValueError) as failed:
            await to.put(ProducerRecord("small", b"1", headers=again.headers), ValueError(), attempts=6)
        assert "it has died 2 times" in failed.value.__notes__[0]


class Json:
    """A serializer that cannot serialize bytes."""

    def serialize(self, topic: str, headers: Any, data: Any) -> bytes | None:
        return None if data is None else json.dumps(data).encode()


async def _fails(to: DeadLetters[Any, Any]) -> None:
    async with to.unit() as unit:
        await unit.send("small", b"never")
        raise ZeroDivisionError


async def test_a_record_that_cannot_be_processed_keeps_its_origin() -> None:
    async with letters("x") as (cluster, to):
        cluster.create_topic("in")
        record = ProducerRecord("in", b"poison", b"k")
        await to.put(
            record,
            ValueError("no order"),
            attempts=2,
            origin=("in", 0, 41),
            offsets={"g": {TopicPartition("in", 0): 42}},
        )
        (letter,) = dead(cluster)
        headers = told(letter)
        origin = [headers[f"origin.{name}"] for name in ("topic", "partition", "offset")]
        assert (headers["error"], headers["message"], headers["attempts"]) == ("ValueError", "no order", "2")
        assert origin == ["in", "0", "41"]
        assert cluster.committed_offsets("g") == {TopicPartition("in", 0): 42}
