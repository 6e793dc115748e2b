"""Retries, refusals and time-outs: what aiokafka shows of them holds for the class that takes its place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer import Outcome
from aioproducer.compat.aiokafka import errors
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from tests.compat.clusters import a_cluster, make
from tests.support.leaks import no_leaks as no_leaks
from tests.support.scripted_broker import Held, answer, drop, edited, error, never
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


async def test_idempotent_retries_write_nothing_twice() -> None:
    async with a_cluster() as cluster, make(cluster, enable_idempotence=True) as producer:
        cluster.broker.script(ApiKey.PRODUCE, drop(appended=True), drop(appended=True))
        metadata = await producer.send_and_wait("t", b"value", partition=0)
        assert (metadata.offset, cluster.values("t")) == (0, [b"value"])


@pytest.mark.parametrize("idempotent", [False, True])
async def test_retries_keep_the_order(idempotent: bool) -> None:
    async with a_cluster(1) as cluster, make(cluster, enable_idempotence=idempotent) as producer:
        refused = error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        cluster.broker.script(ApiKey.PRODUCE, refused, answer, refused, refused)
        futures = []
        for number in range(20):
            futures.append(await producer.send("t", b"%d" % number))
            await asyncio.sleep(0)
        assert [metadata.offset for metadata in await asyncio.gather(*futures)] == list(range(20))
        assert cluster.values("t") == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_leader_that_moves_is_followed_in_order(idempotent: bool) -> None:
    async with a_cluster(nodes=2) as cluster, make(cluster, enable_idempotence=idempotent) as producer:
        cluster.create_topic("led", assignments=[(0, 1)])
        held = Held()
        cluster.brokers[0].script(ApiKey.PRODUCE, held)
        first = await producer.send("led", b"first")
        await cluster.brokers[0].received(ApiKey.PRODUCE)
        cluster.move_leader("led", 0, 1)
        second = await producer.send("led", b"second")
        held.release()
        assert ((await first).offset, (await second).offset) == (0, 1)
        assert cluster.values("led") == [b"first", b"second"]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TopicAuthorizationFailedError"),
        (ErrorCode.MESSAGE_TOO_LARGE, "MessageSizeTooLargeError"),
        (ErrorCode.INVALID_TIMESTAMP, "InvalidTimestampError"),
        (ErrorCode.INVALID_RECORD, "UnknownError"),
    ],
)
async def test_a_refusal_of_a_broker_has_aiokafkas_name(code: ErrorCode, name: str) -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        cluster.broker.script(ApiKey.PRODUCE, error(code))
        with pytest.raises(getattr(errors, name)) as raised:
            await producer.send_and_wait("t", b"value")
        cause: Any = raised.value.__cause__
        assert (cause.code, cause.outcome) == (code, Outcome.NOT_SENT)


@virtual
async def test_an_unknown_topic_fails_after_request_timeout_ms(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with a_cluster(configs={"auto.create.topics.enable": False}) as cluster, make(cluster) as producer:
        for call in (producer.send("unknown", b"value"), producer.partitions_for("unknown")):
            began = loop.time()
            with pytest.raises(errors.UnknownTopicOrPartitionError, match="does not exist") as raised:
                await call
            assert isinstance(raised.value, errors.KafkaTimeoutError)
            assert 40 <= loop.time() - began < 41


@virtual
async def test_no_memory_is_a_time_out(world: World) -> None:
    sizes = {"max_batch_size": 1000, "buffer_memory": 4000, "max_block_ms": 500}
    async with a_cluster(1) as cluster, make(cluster, request_timeout_ms=5000, **sizes) as producer:
        await producer.send_and_wait("t", b"first")
        world.hung_until = asyncio.get_running_loop().time() + 100
        futures: list[asyncio.Future[Any]] = []

        async def fill() -> None:
            while True:
                futures.append(await producer.send("t", bytes(900)))

        with pytest.raises(errors.KafkaTimeoutError):
            await fill()
        assert futures
        for future in futures:
            with pytest.raises(errors.KafkaTimeoutError):
                await future


@virtual
async def test_without_an_answer_a_record_times_out_by_either_name(world: World) -> None:
    loop = asyncio.get_running_loop()
    async with a_cluster(1) as cluster, make(cluster, request_timeout_ms=5000) as producer:
        await producer.send_and_wait("t", b"first")
        world.hung_until = (began := loop.time()) + 100
        with pytest.raises(errors.RequestTimedOutError) as raised:
            await producer.send_and_wait("t", b"lost")
        assert isinstance(raised.value, errors.KafkaTimeoutError)
        assert 5 <= loop.time() - began < 6
        cause: Any = raised.value.__cause__
        assert cause.ledger, "what the time was spent on"


@virtual
async def test_a_late_record_fails_with_its_last_error(world: World) -> None:
    async with a_cluster(1) as cluster, make(cluster, request_timeout_ms=2000) as producer:
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        with pytest.raises(errors.NotLeaderForPartitionError) as raised:
            await producer.send_and_wait("t", b"value")
        assert isinstance(raised.value, errors.KafkaTimeoutError)


@virtual
async def test_a_partition_that_is_refused_costs_no_other(world: World) -> None:
    def refuse(response: Any) -> None:
        for partition in response.responses[0].partition_responses:
            if partition.index == 0:
                partition.error_code = ErrorCode.REQUEST_TIMED_OUT

    async with a_cluster() as cluster, make(cluster, request_timeout_ms=2000) as producer:
        cluster.broker.always(ApiKey.PRODUCE, edited(refuse))
        refused, delivered = [await producer.send("t", b"value", partition=partition) for partition in (0, 1)]
        assert (await delivered).offset == 0
        with pytest.raises(errors.RequestTimedOutError):
            await refused


@virtual
async def test_a_record_without_a_leader_fails_with_that_error(world: World) -> None:
    async with a_cluster(nodes=2) as cluster, make(cluster, request_timeout_ms=5000) as producer:
        cluster.create_topic("led", assignments=[(1,)])
        await producer.send_and_wait("led", b"value")
        await cluster.stop_node(1)
        await asyncio.sleep(1)
        with pytest.raises(errors.LeaderNotAvailableError):
            await producer.send_and_wait("led", b"value")


@virtual
async def test_an_idempotent_producer_tries_for_ever(world: World) -> None:
    async with a_cluster(1) as cluster, make(cluster, enable_idempotence=True) as producer:
        await producer.send_and_wait("t", b"first")
        world.hung_until = asyncio.get_running_loop().time() + 3600
        assert (await producer.send_and_wait("t", b"second")).offset == 1
        assert cluster.values("t") == [b"first", b"second"]


async def test_a_bug_fails_every_record_and_nothing_hangs() -> None:
    async with a_cluster() as cluster, make(cluster) as producer:
        cluster.broker.always(ApiKey.PRODUCE, never())
        sent = await producer.send("t", b"value", partition=0)
        await cluster.broker.received(ApiKey.PRODUCE)
        (sender,) = [task for task in asyncio.all_tasks() if task.get_name() == "aioproducer sender"]
        sender.cancel()
        with pytest.raises(errors.KafkaError, match="cancelled from outside"):
            await sent
        with pytest.raises(errors.KafkaError, match="cancelled from outside"):
            _ = await producer.send("t", b"next", partition=0)
