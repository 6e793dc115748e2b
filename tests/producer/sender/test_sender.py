from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from typing import Any
from uuid import UUID

import pytest

from aioproducer import Delivery, DeliveryError, KafkaProducer, Outcome, Reason, wait_all
from aioproducer.errors import (
    BufferExhaustedException,
    ClusterAuthorizationException,
    IllegalStateException,
    InvalidRecordException,
    KafkaError,
    RecordTooLargeException,
    TimeoutException,
    TopicAuthorizationException,
    TransactionAbortedException,
    UnsupportedVersionException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.broker_link import LinkState
from aioproducer.producer.sender.dispatcher import Dispatcher
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.metadata import MetadataResponse
from aioproducer.protocol.messages.produce import BatchIndexAndErrorMessage, LeaderIdAndEpoch
from aioproducer.protocol.produce_answer import FIRST_WITH_TOPIC_IDS
from aioproducer.records.record_batch import read_batches
from aioproducer.testing import ThreadedCluster
from aioproducer.timing import time_slice
from aioproducer.timing.time_slice import TimeSlice
from tests.support.compiled import interpreted_only
from tests.support.inside import parts_of, sender_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import all_memory_free, end_of, make_producer, turns
from tests.support.scripted_broker import (
    Exchange,
    ScriptedCluster,
    Step,
    after,
    answer,
    crumbs,
    doubled_partitions,
    drop,
    edited,
    error,
    never,
    partial,
    raw,
    throttled,
    with_appendix,
    without_partition,
    wrong_correlation_id,
)
from tests.support.turns import Turns
from tests.support.turns import shortest_turns as shortest_turns
from tests.support.virtual_time import World, virtual

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def send_one_by_one(producer: KafkaProducer, values: list[bytes], topic: str = "t", **where: Any) -> list[Any]:
    """Sends each value in a batch of its own (with linger 0, whatever is there in a turn of the loop goes out)."""
    deliveries = []
    for value in values:
        deliveries.append(producer.send(topic, value, **where))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return deliveries


def batches_of(cluster: ScriptedCluster, node: int = 0) -> list[Any]:
    """Every batch the node was sent, attempts that were not appended included."""
    return [
        batch
        for request in cluster.brokers[node].sent(ApiKey.PRODUCE)
        for topic in request.topic_data
        for partition in topic.partition_data
        for batch in read_batches(partition.records)
    ]


# Troubles that pass

PASSING: dict[str, Step] = {
    "NOT_LEADER_OR_FOLLOWER": error(ErrorCode.NOT_LEADER_OR_FOLLOWER),
    "NOT_ENOUGH_REPLICAS": error(ErrorCode.NOT_ENOUGH_REPLICAS),
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": error(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, appended=True),
    "REQUEST_TIMED_OUT, appended": error(ErrorCode.REQUEST_TIMED_OUT, appended=True),
    "CORRUPT_MESSAGE": error(ErrorCode.CORRUPT_MESSAGE),
    "dropped before": drop(),
    "dropped after": drop(appended=True),
    "half an answer": partial(),
    "one byte of an answer": partial(0.0),
    "in crumbs": crumbs(),
    "another request's answer": wrong_correlation_id(),
    "an answer too many": with_appendix(),
    "a negative frame": raw(b"\xff\xff\xff\xff"),
    "a huge frame": raw(b"\x7f\xff\xff\xff"),
    "HTTP": raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    "garbage": raw(b"\0\0\0\x08garbage!"),
    "the partition left out": edited(without_partition(0)),
    "the partition twice": edited(doubled_partitions),
}


@pytest.mark.parametrize("trouble", PASSING)
async def test_a_passing_trouble_neither_loses_doubles_nor_reorders(trouble: str) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"first")
            cluster.broker.script(ApiKey.PRODUCE, PASSING[trouble])
            deliveries = await send_one_by_one(producer, numbered(8))
            metadata = [await delivery for delivery in deliveries]
        assert cluster.values("t") == [b"first", *numbered(8)]
        assert [m.offset for m in metadata] == list(range(1, 9))
        assert all_memory_free(producer)


async def test_records_survive_one_trouble_after_another() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 3)
        cluster.broker.script(
            ApiKey.PRODUCE, drop(appended=True), drop(), answer, PASSING["NOT_ENOUGH_REPLICAS"], drop(appended=True)
        )
        async with make_producer(cluster.bootstrap_servers, batch_size=100) as producer:
            deliveries = [producer.send("t", b"%d" % n, partition=n % 3) for n in range(300)]
            await producer.flush()
            assert all(delivery.exception() is None for delivery in deliveries)
        for partition in range(3):
            assert cluster.values("t", partition) == [b"%d" % n for n in range(partition, 300, 3)]


async def test_a_retry_is_byte_identical() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, drop(appended=True), PASSING["NOT_ENOUGH_REPLICAS"])
        async with make_producer(cluster.bootstrap_servers, compression_type="gzip") as producer:
            assert (await producer.send("t", b"value", headers=[("a", b"b")])).offset == 0
        first, second, third = (bytes(batch.data) for batch in batches_of(cluster))
        assert first == second == third


async def test_sequences_go_on_over_reconnects() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers) as producer:
            for value in numbered(5):
                _ = await producer.send("t", value)
                cluster.broker.drop_connections()
        assert cluster.values("t") == numbered(5)
        assert [batch.base_sequence for batch in cluster.log("t").batches()] == list(range(5))
        assert {(batch.producer_id, batch.producer_epoch) for batch in cluster.log("t").batches()} == {(0, 0)}


@virtual
async def test_without_linger_what_is_there_goes_out_in_the_senders_next_turn(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, linger_ms=0) as producer:
            _ = await producer.send("t", b"first")
            deliveries = [producer.send("t", value) for value in numbered(3)]
            assert producer.metrics()["requests-in-flight"] == 0
            await turns(3)
            assert producer.metrics()["requests-in-flight"] == 1
            deliveries.append(producer.send("t", b"3"))
            await turns(3)
            assert producer.metrics()["requests-in-flight"] == 2, "it waits for no answer"
            await wait_all(deliveries)
        assert [batch.count for batch in cluster.log("t").batches()] == [1, 3, 1]


async def test_retries_are_bounded_when_asked_to_be() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS))
        async with make_producer(cluster.bootstrap_servers, retries=2) as producer:
            ended = await end_of(producer.send("t", b"v"))
        assert isinstance(ended, DeliveryError)
        assert ended.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert ended.outcome is Outcome.NOT_SENT
        assert cluster.broker.count(ApiKey.PRODUCE) == 3


async def test_the_answer_tells_the_new_leader() -> None:
    """It alone: metadata goes on telling the old one, of an epoch that is over."""
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0]])
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"a")
            cluster.move_leader("t", 0, 1)
            for broker in cluster.brokers:
                broker.always(ApiKey.METADATA, edited(_tells_leader_0))
            assert (await producer.send("t", b"b")).offset == 1
            assert [broker.count(ApiKey.PRODUCE) for broker in cluster.brokers] == [2, 1]
        assert cluster.values("t") == [b"a", b"b"]


def _tells_leader_0(response: Any) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            partition.leader_id = partition.leader_epoch = 0


def _tells_no_leader(response: Any) -> None:
    for topic in response.responses:
        for partition in topic.partition_responses:
            partition.current_leader = LeaderIdAndEpoch()
    response.node_endpoints = []


async def test_metadata_tells_the_new_leader() -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0]])
        cluster.brokers[0].always(ApiKey.PRODUCE, edited(_tells_no_leader))
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"0")
            cluster.move_leader("t", 0, 1)
            deliveries = await send_one_by_one(producer, numbered(5))
            await producer.flush()
            assert [delivery.result().offset for delivery in deliveries] == [1, 2, 3, 4, 5]
        assert cluster.values("t") == [b"0", *numbered(5)]


@virtual
async def test_old_metadata_is_refreshed(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, metadata_max_age_ms=60_000) as producer:
            assert math.isnan(producer.metrics()["metadata-age"])
            _ = await producer.send("t", b"v")
            asked = cluster.broker.count(ApiKey.METADATA)
            await asyncio.sleep(59)
            assert producer.metrics()["metadata-age"] == pytest.approx(59, abs=0.5)
            assert cluster.broker.count(ApiKey.METADATA) == asked
            await asyncio.sleep(2)
            assert producer.metrics()["metadata-age"] == pytest.approx(1, abs=0.5)
            assert cluster.broker.count(ApiKey.METADATA) == asked + 1
            assert [topic.name for topic in cluster.broker.sent(ApiKey.METADATA)[-1].topics] == ["t"]


async def test_leaders_that_move_all_the_time() -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0], [1]])
        async with make_producer(cluster.bootstrap_servers, batch_size=50) as producer:
            for n in range(400):
                _ = producer.send("t", b"%d" % n, partition=n % 2)
                if n % 50 == 0:
                    cluster.move_leader("t", n // 50 % 2, n // 100 % 2)
                if n % 5 == 0:
                    await asyncio.sleep(0)
            await producer.flush()
        for partition in range(2):
            assert cluster.values("t", partition) == [b"%d" % n for n in range(partition, 400, 2)]


async def test_a_node_that_dies_and_comes_back() -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0]])
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"0")
            await cluster.stop_node(0)
            deliveries = await send_one_by_one(producer, [b"1", b"2"])
            await cluster.brokers[1].received(ApiKey.METADATA, 2)
            await cluster.start_node(0)
            assert [(await delivery).offset for delivery in deliveries] == [1, 2]
        assert cluster.values("t") == [b"0", b"1", b"2"]


async def test_all_brokers_come_back_on_other_ports_but_one() -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0]])
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"0")
            await cluster.stop_node(0)
            await cluster.stop_node(1)
            delivery = producer.send("t", b"1")
            await cluster.start_node(0, port=0)
            await cluster.start_node(1)
            assert (await delivery).offset == 1


async def test_every_broker_is_found_from_one() -> None:
    async with ScriptedCluster(3) as cluster:
        cluster.create_topic("t", assignments=[[0], [1], [2]])
        async with make_producer(cluster.bootstrap_servers.split(",")[1]) as producer:
            await wait_all([producer.send("t", b"v", partition=partition) for partition in range(3)])
        assert [broker.count(ApiKey.PRODUCE) for broker in cluster.brokers] == [1, 1, 1]


@interpreted_only
async def test_a_pass_of_the_sender_leaves_to_the_next_the_nodes_that_it_has_no_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedCluster(3) as cluster:
        cluster.create_topic("t", assignments=[[0], [1], [2]])
        async with make_producer(cluster.bootstrap_servers, linger_ms=1000) as producer:
            await wait_all([producer.send("t", b"first", partition=partition) for partition in range(3)])
            sender_pass = parts_of(producer).sender_pass
            served: list[int] = []
            send_to = Dispatcher.send_to

            def noting(self: Dispatcher, node: int, now: float) -> None:
                served.append(sender_pass.count)
                send_to(self, node, now)

            monkeypatch.setattr(Dispatcher, "send_to", noting)
            monkeypatch.setattr(TimeSlice, "over", lambda self: True)
            deliveries = [producer.send("t", b"next", partition=partition) for partition in range(3)]
            await producer.flush()
            assert all(delivery.exception() is None for delivery in deliveries)
            assert len(served) == len(set(served)) >= 3, "one node in each pass"
        assert [broker.count(ApiKey.PRODUCE) for broker in cluster.brokers] == [2, 2, 2]


async def test_bootstrap_servers_are_asked_again_when_no_known_broker_is_left() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        door = cluster.another_broker()  # a bootstrap server that is not among the brokers the cluster tells
        servers = f"127.0.0.1:{await door.open('127.0.0.1', 0)}"
        try:
            async with make_producer(servers) as producer:
                _ = await producer.send("t", b"0")
                await cluster.stop_node(0)
                await cluster.start_node(0, port=0)
                assert (await producer.send("t", b"1")).offset == 1
        finally:
            await door.abort()


# Time-outs


@virtual
async def test_a_request_that_is_not_answered_is_sent_again_on_a_new_connection(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, never(appended=True))
        async with make_producer(cluster.bootstrap_servers, request_timeout_ms=50) as producer:
            assert (await producer.send("t", b"v")).offset == 0
        assert cluster.values("t") == [b"v"]
        assert cluster.broker.count(ApiKey.PRODUCE) == 2


@pytest.mark.parametrize("lost", [drop(), drop(appended=True), never()], ids=["before", "after", "timed out"])
@virtual
async def test_a_lost_connection_and_a_time_out_are_a_network_exception(world: World, lost: Step) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, lost)
        async with make_producer(cluster.bootstrap_servers, retries=0, request_timeout_ms=50) as producer:
            ended = await end_of(producer.send("t", b"v"))
        assert isinstance(ended, DeliveryError)
        assert (ended.code, ended.outcome) == (ErrorCode.NETWORK_EXCEPTION, Outcome.UNKNOWN)
        assert cluster.broker.count(ApiKey.PRODUCE) == 1


@virtual
async def test_records_that_waited_for_metadata_linger_as_all_others_do(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, linger_ms=60_000, delivery_timeout_ms=100_000) as producer:
            deliveries = [producer.send("t", b"%d" % n) for n in range(3)]
            await producer.partitions_for("t")
            await asyncio.sleep(1)
            assert producer.explain("t", 0).reason is Reason.LINGER
            await producer.flush()
            assert [delivery.result().offset for delivery in deliveries] == [0, 1, 2]


SHORT = {"request_timeout_ms": 200, "delivery_timeout_ms": 400}


@virtual
async def test_delivery_timeout_while_a_request_is_under_way(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, never())
        config = {"request_timeout_ms": 150, "delivery_timeout_ms": 150}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.partitions_for("t")
            ended = await end_of(producer.send("t", b"v"))
            assert isinstance(ended, TimeoutException)
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.UNKNOWN
            assert "delivery.timeout.ms=150" in str(ended)
        assert all_memory_free(producer)


@virtual
async def test_a_batch_expired_in_flight_keeps_its_memory_until_its_answer(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    gate = asyncio.Event()
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config = {
            "request_timeout_ms": 400,
            "delivery_timeout_ms": 400,
            "retry_backoff_ms": 200,
            "retry_backoff_max_ms": 200,
        }
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"0")
            cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS), after(gate))
            delivery = producer.send("t", b"1")
            ended = await end_of(delivery)  # its second request has time left
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.UNKNOWN
            assert not all_memory_free(producer)
            gate.set()
            # The one that was given up was appended after all; what comes next starts again under the next epoch.
            assert (await producer.send("t", b"2")).offset == 2
            assert all_memory_free(producer)
        assert cluster.values("t") == [b"0", b"1", b"2"]
        assert [(b.producer_epoch, b.base_sequence) for b in cluster.log("t").batches()] == [(0, 0), (0, 1), (1, 0)]


@virtual
async def test_delivery_timeout_without_a_leader(world: World) -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[1], [0]])
        async with make_producer(cluster.bootstrap_servers, **SHORT) as producer:
            _ = await producer.send("t", b"v", partition=0)
            await cluster.stop_node(1)
            ended = await end_of(producer.send("t", b"w", partition=0))
            assert isinstance(ended, TimeoutException)
            assert isinstance(ended, DeliveryError)
            assert "the partition has no leader" in str(ended)
            assert max(ended.ledger, key=lambda entry: entry.seconds).cause == "no leader"
            assert (await producer.send("t", b"x", partition=1)).offset == 0  # others are none the worse for it
        assert all_memory_free(producer)


@virtual
async def test_delivery_timeout_with_all_brokers_down(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, **SHORT) as producer:
            _ = await producer.send("t", b"v")
            await cluster.stop_node(0)
            ended = await end_of(producer.send("t", b"w"))
            assert isinstance(ended, TimeoutException)
            assert isinstance(ended, DeliveryError)
            assert "is not connected" in str(ended)
        assert all_memory_free(producer)


@virtual
async def test_delivery_timeout_in_the_queue_is_proven_not_sent(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, edited(throttled(3_600_000)))
        async with make_producer(cluster.bootstrap_servers, **SHORT) as producer:
            _ = await producer.send("t", b"0")
            ended = await end_of(producer.send("t", b"1"))
            assert isinstance(ended, TimeoutException)
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.NOT_SENT
            assert "0 attempts" in str(ended)
            assert "throttle" in str(ended)
        assert cluster.values("t") == [b"0"]


@virtual
async def test_delivery_timeout_without_a_producer_id(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.INIT_PRODUCER_ID, error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        async with make_producer(cluster.bootstrap_servers, **SHORT) as producer:
            ended = await end_of(producer.send("t", b"v"))
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.NOT_SENT
            assert "no producer id" in str(ended)


@virtual
async def test_the_message_of_a_timeout_tells_attempts_and_the_last_error(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS))
        config = {**SHORT, "retry_backoff_ms": 1000, "retry_backoff_max_ms": 1000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            ended = await end_of(producer.send("t", b"v"))
        assert isinstance(ended, DeliveryError)
        assert ended.outcome is Outcome.NOT_SENT
        assert "attempt" in str(ended)
        assert "NOT_ENOUGH_REPLICAS" in str(ended)


# acks


@pytest.mark.parametrize("acks", ["0", "1"])
async def test_weaker_acks(acks: str) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, acks=acks) as producer:
            metadata = [await producer.send("t", value) for value in numbered(3)]
            assert [m.offset for m in metadata] == ([-1, -1, -1] if acks == "0" else [0, 1, 2])
        # What acks=0 wrote leaves the socket before close() is done, and is handled in its own time.
        await cluster.broker.received(ApiKey.PRODUCE, 3)
        assert cluster.values("t") == numbered(3)
        assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 0
        assert all_memory_free(producer)


async def test_acks_0_and_memory_for_one_batch() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config = {"acks": "0", "buffer_memory": 1000, "batch_size": 1000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            for n in range(50):
                _ = await producer.enqueue("t", bytes(400), key=b"%d" % n)
        assert all_memory_free(producer)


async def test_acks_1_without_idempotence_keeps_order_with_one_request_at_a_time() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS), answer, drop())
        config = {"acks": "1", "max_in_flight_requests_per_connection": 1}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            await asyncio.gather(*await send_one_by_one(producer, numbered(6)))
        assert cluster.values("t") == numbered(6)


async def test_an_idempotent_producer_with_one_request_at_a_time() -> None:
    """InitProducerId takes its turn like all others, and each batch waits for the one before."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, answer, drop(appended=True))
        async with make_producer(cluster.bootstrap_servers, max_in_flight_requests_per_connection=1) as producer:
            await asyncio.gather(*await send_one_by_one(producer, numbered(5)))
        assert cluster.values("t") == numbered(5)
        assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 1


async def test_a_batch_size_of_0_means_a_batch_for_each_record() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config = {"batch_size": 0, "linger_ms": 5000, "delivery_timeout_ms": 10_000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            deliveries = [producer.send("t", value) for value in numbered(4)]
            await asyncio.gather(*deliveries[:3])  # the last lingers, as nothing came after it
            await producer.flush()
        assert [batch.count for batch in batches_of(cluster)] == [1, 1, 1, 1]


async def test_a_leader_that_is_no_broker_of_the_cluster_is_asked_about_until_it_is() -> None:
    strange = 3

    def elsewhere(response: Any) -> None:
        for topic in response.topics:
            for partition in topic.partitions:
                partition.leader_id = 77

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.METADATA, *[edited(elsewhere)] * strange)
        async with make_producer(cluster.bootstrap_servers) as producer:
            assert (await producer.send("t", b"v")).offset == 0
        assert cluster.broker.count(ApiKey.METADATA) > strange


# Throttling, slow brokers, many nodes


async def test_a_throttled_broker_is_left_alone() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, edited(throttled(100)))
        async with make_producer(cluster.bootstrap_servers) as producer:
            loop = asyncio.get_running_loop()
            began = loop.time()
            _ = await producer.send("t", b"a")
            _ = await producer.send("t", b"b")
            assert loop.time() - began >= 0.1


async def test_requests_and_answers_are_measured() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, linger_ms=50, client_id="me") as producer:
            await asyncio.gather(*(producer.send("t", bytes(100)) for _ in range(10)))
            cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS), edited(throttled(30)))
            _ = await producer.send("t", bytes(1000))
            await producer.flush()
            found = producer.metrics()
        requests = cluster.broker.sent(ApiKey.PRODUCE)
    assert (found["record-send-total"], found["batch-total"], len(requests)) == (12, 3, 3)
    assert (found["record-delivered-total"], found["record-retry-total"], found["record-error-total"]) == (11, 1, 0)
    assert found["records-per-request-avg"] == 4
    sizes = [len(bytes(request.topic_data[0].partition_data[0].records)) for request in requests]
    assert found["batch-size-max"] == max(sizes)
    assert found["batch-size-avg"] == pytest.approx(sum(sizes) / 3)
    assert found.topic("t")["byte-total"] == sum(sizes)
    assert found["record-size-max"] == pytest.approx(1000 + 61, abs=30)
    assert found["produce-throttle-time-max"] == 30
    assert 0 < found["request-latency-avg"] <= found["request-latency-max"]
    assert found["request-latency-max"] == found.node(0)["request-latency-max"]
    assert 0 < found["record-queue-time-avg"] <= found["record-queue-time-max"]
    assert found.node(0)["request-total"] + found.node(-1)["request-total"] == found["request-total"]
    assert found["connection-count"] in (1, 2)
    assert 0 <= found["metadata-age"] < 60
    assert found["flush-time-ns-total"] >= 0
    assert found.node(0).select(client_id="me") == found.node(0)


async def test_a_long_throttle_holds_up_neither_other_brokers_nor_close() -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0], [1]])
        cluster.brokers[0].script(ApiKey.PRODUCE, edited(throttled(3_600_000)))
        producer = make_producer(cluster.bootstrap_servers)
        await producer.start()
        _ = await producer.send("t", b"a", partition=0)
        waiting = producer.send("t", b"b", partition=0)
        assert (await producer.send("t", b"c", partition=1)).offset == 0
        await producer.close(timeout=0.01)
        assert waiting.outcome is Outcome.NOT_SENT


async def test_a_broker_that_never_reads_blocks_nobody_else_and_costs_bounded_memory() -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0], [1]])
        cluster.brokers[0].always(ApiKey.PRODUCE, never())
        config = {"batch_size": 100_000, "max_request_size": 200_000, "send_buffer_bytes": 8192, "acks": "1"}
        config |= {"max_in_flight_requests_per_connection": 1000}
        producer = make_producer(cluster.bootstrap_servers, **config)
        await producer.start()
        _ = await producer.partitions_for("t")
        stuck = [producer.send("t", bytes(90_000), partition=0) for _ in range(100)]
        for n in range(50):
            assert (await producer.send("t", b"%d" % n, partition=1)).offset == n
        link = parts_of(producer).client.links.get(0)
        assert link is not None
        assert link.connection is not None
        transport = link.connection._transport
        assert transport is not None
        assert 0 < transport.get_write_buffer_size() <= 2 * 200_000 + 1000
        assert not any(delivery.done() for delivery in stuck)
        await producer.close(timeout=0)
        assert all(delivery.done() for delivery in stuck)
        assert all_memory_free(producer)


@virtual
async def test_flush_ends_with_the_producer_while_records_are_parked(world: World) -> None:
    async with ScriptedCluster() as cluster:
        producer = make_producer(cluster.bootstrap_servers)
        await producer.start()
        delivery = producer.send("t", b"value")
        flushing = asyncio.create_task(producer.flush())
        await asyncio.sleep(0)
        sender_of(producer).abort(KafkaError("it is over"))
        async with asyncio.timeout(1):
            await flushing
        assert isinstance(delivery.exception(), KafkaError)
        await producer.close()


@virtual
async def test_flush_waits_for_no_later_record_while_a_topic_is_missing(world: World) -> None:
    async with ScriptedCluster(configs={"auto.create.topics.enable": False}) as cluster:
        cluster.create_topic("t")
        async with make_producer(cluster.bootstrap_servers, metadata_max_age_ms=100) as producer:
            _ = await producer.send("t", b"first")
            cluster.broker.script(ApiKey.PRODUCE, never())
            early = producer.send("missing", b"parked")
            flushing = asyncio.create_task(producer.flush())
            await asyncio.sleep(0.1)
            late = producer.send("t", b"never answered")
            await asyncio.sleep(0.1)
            cluster.create_topic("missing")
            await flushing
            assert early.done()
            assert not late.done()
            await producer.flush()
            assert late.done()


@virtual
async def test_flush_waits_for_no_record_that_came_while_earlier_ones_were_parked(world: World) -> None:
    """The oldest parked record is delivered seconds after it has left the line, and others have come by then."""

    async def slowly(exchange: Exchange) -> None:
        await asyncio.sleep(1)
        await answer(exchange)

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 100)
        # One record in a batch, one batch in a request, one request after the other.
        config = {"buffer_memory": 8000, "batch_size": 0, "max_request_size": 1000}
        config |= {"max_in_flight_requests_per_connection": 1, "max_block_ms": 60_000, "delivery_timeout_ms": 120_000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"first", partition=0)
            cluster.broker.always(ApiKey.PRODUCE, slowly)
            partitions = itertools.cycle(range(100))
            old = [producer.send("t", bytes(900), partition=next(partitions)) for _ in range(7)]
            flushing, later = asyncio.create_task(producer.flush()), []
            await asyncio.sleep(0)
            while not all(delivery.done() for delivery in old):
                later.append(producer.send("t", bytes(900), partition=next(partitions)))
                await asyncio.sleep(0.1)
            await asyncio.sleep(0.01)
            assert flushing.done()
            await flushing
            cluster.broker.always(ApiKey.PRODUCE, None)


@virtual
async def test_flushes_that_follow_each_other_keep_no_batches_of_earlier_ones(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 100)
        config = {"buffer_memory": 8000, "batch_size": 0, "max_block_ms": 60_000, "delivery_timeout_ms": 120_000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"first", partition=0)
            lot, partitions = sender_of(producer)._lot, itertools.cycle(range(100))
            sent, flushes, most = [], [], 0
            for _ in range(300):
                while len(lot) < 4:
                    sent.append(producer.send("t", bytes(900), partition=next(partitions)))
                flushes.append(asyncio.create_task(producer.flush()))
                await asyncio.sleep(0.001)
                most = max(most, len(lot._joined))
            await asyncio.gather(*flushes)
            await producer.flush()
        assert len(sent) > 200
        assert 0 < most < 40
        assert all(delivery.exception() is None for delivery in sent)


async def test_a_request_is_no_larger_than_max_request_size() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 20)
        async with make_producer(cluster.bootstrap_servers, max_request_size=5000, linger_ms=10) as producer:
            for n in range(20):
                _ = producer.send("t", bytes(900), partition=n)
            await producer.flush()
        assert max(len(r.topic_data[0].partition_data) for r in cluster.broker.sent(ApiKey.PRODUCE)) == 5
        assert [len(cluster.values("t", n)) for n in range(20)] == [1] * 20


# Errors that do not pass


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationException),
        (ErrorCode.MESSAGE_TOO_LARGE, RecordTooLargeException),
    ],
)
async def test_a_refused_batch_fails_at_once_and_the_next_goes_on(code: ErrorCode, kind: type[Exception]) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"0")
            cluster.broker.script(ApiKey.PRODUCE, error(code))
            ended = await end_of(producer.send("t", b"1"))
            assert isinstance(ended, kind)
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.NOT_SENT
            assert "t-0" in str(ended)
            assert (await producer.send("t", b"2")).offset == 1
        assert cluster.values("t") == [b"0", b"2"]


def refused(response: Any) -> None:
    (answered,) = response.responses[0].partition_responses
    answered.error_code, answered.base_offset = ErrorCode.INVALID_RECORD, -1
    answered.error_message = "validation failed"
    answered.record_errors = [BatchIndexAndErrorMessage(0, "no key"), BatchIndexAndErrorMessage(2, None)]


async def test_each_record_of_a_refused_batch_gets_its_own_error_in_a_transaction() -> None:
    """The records that are not refused are of no use there."""
    async with ScriptedCluster() as cluster:
        cluster.broker.script(ApiKey.PRODUCE, edited(refused))
        async with make_producer(
            cluster.bootstrap_servers, linger_ms=50, delivery_timeout_ms=10_000, transactional_id="x"
        ) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            sent = [producer.send("t", b"%d" % number) for number in range(4)]
            ends = [await end_of(delivery) for delivery in sent]
            assert [isinstance(end, InvalidRecordException) for end in ends] == [True, False, True, False]
            assert all(isinstance(end, DeliveryError) and end.outcome is Outcome.NOT_SENT for end in ends)
            assert str(ends[0]) == "t-0: no key"
            assert str(ends[2]) == "t-0: The broker's validation refused a record of the batch."
            assert "not appended, as its batch had records that were refused: 0, 2" in str(ends[1])
            await producer.abort_transaction()


async def test_a_code_nobody_knows_fails_the_batch() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, error(12345))  # type: ignore[arg-type]
        async with make_producer(cluster.bootstrap_servers) as producer:
            ended = await end_of(producer.send("t", b"v"))
        assert isinstance(ended, DeliveryError)
        assert ended.outcome is Outcome.UNKNOWN


async def test_a_broker_too_old_to_produce_to() -> None:
    def ancient(response: Any) -> None:
        for api in response.api_keys:
            if api.api_key == ApiKey.PRODUCE:
                api.min_version = api.max_version = 1

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.API_VERSIONS, edited(ancient))
        async with make_producer(cluster.bootstrap_servers) as producer:
            ended = await end_of(producer.send("t", b"v"))
        assert isinstance(ended, UnsupportedVersionException)
        assert isinstance(ended, DeliveryError)
        assert ended.outcome is Outcome.NOT_SENT


@pytest.mark.parametrize("newest", [3, 8, 9, 12])
async def test_older_versions_of_produce(newest: int) -> None:
    def older(response: Any) -> None:
        for api in response.api_keys:
            if api.api_key == ApiKey.PRODUCE:
                api.max_version = newest

    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.API_VERSIONS, edited(older))
        async with make_producer(cluster.bootstrap_servers) as producer:
            assert (await producer.send("t", b"v")).offset == 0
        assert {h.api_version for h, _ in cluster.broker.requests if h.api_key == ApiKey.PRODUCE} == {newest}


async def test_a_topic_created_anew_goes_on_without_loss() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"old")
            cluster.delete_topic("t")
            cluster.create_topic("t", 1)
            assert (await producer.send("t", b"new")).offset == 0
        assert cluster.values("t") == [b"new"]


@virtual
async def test_a_topic_created_anew_with_fewer_partitions_goes_on(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 3)
        async with make_producer(cluster.bootstrap_servers, max_block_ms=500) as producer:
            for partition in range(3):
                _ = await producer.send("t", b"old", partition=partition)
            cluster.delete_topic("t")
            cluster.create_topic("t", 1)
            assert (await producer.send("t", b"first", partition=0)).offset == 0
            keyed = [producer.send("t", b"new", key=b"%d" % n) for n in range(12)]
            await wait_all(keyed)
            assert {delivery.result().partition for delivery in keyed} == {0}
            beyond = await end_of(producer.send("t", b"v", partition=2))
            assert isinstance(beyond, TimeoutException)


@virtual
async def test_records_for_a_partition_that_is_gone_say_so(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 3)
        config = {"delivery_timeout_ms": 3000, "request_timeout_ms": 1000, "linger_ms": 1000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            await producer.partitions_for("t")
            waiting = producer.send("t", b"v", partition=2)
            cluster.delete_topic("t")
            cluster.create_topic("t", 1)
            assert (await producer.send("t", b"first", partition=0)).offset == 0
            gone = "the topic was created anew, and has 1 partition now"
            assert gone in str(producer.explain("t", 2))
            assert producer.explain("t", 2).records == 1
            assert gone in str(await end_of(waiting))


@virtual
async def test_a_topic_is_not_forgotten_while_its_records_wait(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers, max_block_ms=500) as producer:
            sender = sender_of(producer)
            waiting = producer.send("t", b"v", partition=99)
            assert sender.topics_in_use() == {"t"}
            _ = await end_of(waiting)
            held = producer.send("t", b"v")
            assert sender.topics_in_use() == {"t"}
            _ = await held
            assert sender.topics_in_use() == set()


async def test_deadlines_do_not_pile_up_with_full_batches() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        timeouts = {"linger_ms": 60_000, "delivery_timeout_ms": 100_000}
        async with make_producer(cluster.bootstrap_servers, batch_size=200, **timeouts) as producer:
            for _ in range(100):
                _ = await producer.enqueue("t", bytes(100))
            assert len(parts_of(producer).schedule._lingers) == 1
            await producer.flush()
            assert len(parts_of(producer).schedule._lingers) == 0


# The producer id


async def test_the_producer_id_is_requested_at_the_start() -> None:
    async with ScriptedCluster() as cluster, make_producer(cluster.bootstrap_servers):
        await cluster.broker.received(ApiKey.INIT_PRODUCER_ID)


async def test_init_producer_id_is_tried_again_after_a_passing_error() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(
            ApiKey.INIT_PRODUCER_ID,
            error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            error(ErrorCode.NOT_COORDINATOR),
            drop(),
            raw(b"\0\0\0\x08garbage!"),
        )
        async with make_producer(cluster.bootstrap_servers) as producer:
            assert (await producer.send("t", b"v")).offset == 0
        assert cluster.broker.count(ApiKey.INIT_PRODUCER_ID) == 5


async def test_a_refused_producer_id_fails_what_is_pending_and_the_next_record_asks_again() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.INIT_PRODUCER_ID, error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        async with make_producer(cluster.bootstrap_servers) as producer:
            ended = await end_of(producer.send("t", b"v"))
            assert isinstance(ended, ClusterAuthorizationException)
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.NOT_SENT
            assert (await producer.send("t", b"w")).offset == 0
        assert cluster.values("t") == [b"w"]


async def test_a_producer_id_refused_when_the_first_is_used_up_leaves_no_partition_stuck() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"0")
            cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.NOT_ENOUGH_REPLICAS))
            cluster.broker.script(ApiKey.INIT_PRODUCER_ID, error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
            retried = producer.send("t", b"1")
            await cluster.broker.received(ApiKey.PRODUCE, 3)
            parts_of(producer).id_source.ids.current = None  # as when a partition has no epochs left
            lingering = producer.send("t", b"2")
            assert isinstance(await end_of(retried), ClusterAuthorizationException)
            assert isinstance(await end_of(lingering), ClusterAuthorizationException)
            cluster.broker.always(ApiKey.PRODUCE, None)
            assert (await producer.send("t", b"3")).offset == 1
            assert all_memory_free(producer)


async def test_a_topic_recreated_with_fewer_partitions_does_not_block_waits_for_memory() -> None:
    gate = asyncio.Event()
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[1]] * 3)
        cluster.create_topic("u", assignments=[[0]])
        config = {"buffer_memory": 1000, "batch_size": 1000, "retry_backoff_ms": 1}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"v", partition=0)
            await producer.partitions_for("u")
            cluster.brokers[0].script(ApiKey.PRODUCE, after(gate))
            first = producer.send("u", b"v")
            gone = producer.send("t", b"v", partition=2)
            behind = producer.send("u", b"w")
            await cluster.brokers[0].received(ApiKey.PRODUCE)
            cluster.delete_topic("t")
            cluster.create_topic("t", assignments=[[1]])
            parts_of(producer).client.request_update()
            while len(await producer.partitions_for("t")) == 3:
                await parts_of(producer).client.changes.next()
            gate.set()
            assert [(await first).offset, (await behind).offset] == [0, 1]
            assert not gone.done()
            await producer.close(timeout=0)
            assert gone.outcome is Outcome.NOT_SENT


async def test_a_producer_id_that_will_never_come_is_fatal() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.INIT_PRODUCER_ID, error(ErrorCode.INVALID_REQUEST))
        async with make_producer(cluster.bootstrap_servers) as producer:
            ended = await end_of(producer.send("t", b"v"))
            assert isinstance(ended, DeliveryError)
            assert ended.outcome is Outcome.NOT_SENT
            with pytest.raises(IllegalStateException, match="INVALID_REQUEST"):
                _ = producer.send("t", b"w")
            with pytest.raises(IllegalStateException, match="INVALID_REQUEST"):
                _ = await producer.enqueue("t", b"w")
            await producer.flush()


async def test_out_of_order_without_cause_is_sent_again_under_the_next_epoch() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 2)
        async with make_producer(cluster.bootstrap_servers) as producer:
            _ = await producer.send("t", b"0", partition=0)
            _ = await producer.send("t", b"0", partition=1)
            cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
            assert (await producer.send("t", b"1", partition=0)).offset == 1
            assert (await producer.send("t", b"1", partition=1)).offset == 1
        epochs = [[(b.producer_epoch, b.base_sequence) for b in cluster.log("t", p).batches()] for p in range(2)]
        assert epochs == [[(0, 0), (1, 0)], [(0, 0), (0, 1)]]  # the other partition is left alone


async def test_duplicates_are_answered_with_the_original_offset() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        async with make_producer(cluster.bootstrap_servers) as producer:
            cluster.broker.script(ApiKey.PRODUCE, *[drop(appended=True)] * 3)
            metadata = await asyncio.gather(*await send_one_by_one(producer, numbered(5)))
            assert [m.offset for m in metadata] == [0, 1, 2, 3, 4]
        assert cluster.values("t") == numbered(5)


async def test_a_duplicate_the_broker_only_recognises_has_no_offset() -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.script(ApiKey.PRODUCE, error(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, appended=True))
        async with make_producer(cluster.bootstrap_servers) as producer:
            assert (await producer.send("t", b"v")).offset == -1


# An outage is told in few lines, and brokers are not hammered


async def test_an_outage_and_its_end_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        config = {"reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 2}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"0")
            client = parts_of(producer).client
            link = client.links.get(0)
            assert link is not None
            await cluster.stop_node(0)
            delivery = producer.send("t", b"1")
            while link.failures < 20:
                await client.changes.next()
            await cluster.start_node(0)
            _ = await delivery
        said = [r.getMessage() for r in caplog.records if r.name.startswith("aioproducer") and "broker." not in r.name]
        assert len([line for line in said if "cannot be reached" in line]) <= 2, said  # the node, and the bootstrap
        assert len(said) <= 4, said


async def test_the_failures_of_records_that_nobody_awaits_are_logged_beside_those_of_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        async with make_producer(cluster.bootstrap_servers, linger_ms=50) as producer:
            _ = await producer.partitions_for("t")
            bulk = asyncio.create_task(producer.send_many("t", numbered(4)))
            await asyncio.sleep(0)
            deliveries = [producer.send("t", value) for value in numbered(10)]
            deliveries[3].add_done_callback(lambda _: None)
            assert isinstance(await end_of(deliveries[5]), TopicAuthorizationException)
            assert len((await bulk).errors) == 4
            assert len({delivery.place()[0] for delivery in deliveries}) == 1
        (line,) = [r.getMessage() for r in caplog.records if r.name == "aioproducer.producer.diagnosis.failure_log"]
        assert line.startswith("t-0: 8 records were not delivered")


async def test_unawaited_failures_are_logged_in_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        async with make_producer(cluster.bootstrap_servers) as producer:
            for value in numbered(50):
                _ = producer.send("t", value)
                await asyncio.sleep(0)
        told = [r.getMessage() for r in caplog.records if r.name == "aioproducer.producer.diagnosis.failure_log"]
        assert 1 <= len(told) <= 2
        assert "t-0" in told[0]


async def test_records_lost_while_the_producer_closes_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    """close() flushes, and flush() waits for every batch; yet nobody has asked what became of the records."""
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, error(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        async with make_producer(cluster.bootstrap_servers, linger_ms=1000) as producer:
            _ = producer.send("t", b"v")
        assert [r for r in caplog.records if r.name == "aioproducer.producer.diagnosis.failure_log"]


async def test_no_metadata_for_a_topic_that_may_not_be_written(caplog: pytest.LogCaptureFixture) -> None:
    async with ScriptedCluster() as cluster:
        cluster.broker.always(ApiKey.METADATA, edited(_forbidden))
        async with make_producer(cluster.bootstrap_servers) as producer:
            ended = await end_of(producer.send("t", b"v"))
            assert isinstance(ended, TopicAuthorizationException)
            with pytest.raises(TopicAuthorizationException):
                await producer.partitions_for("t")


@virtual
@pytest.mark.usefixtures("shortest_turns")
async def test_records_for_a_topic_that_may_not_be_written_fail_in_turns_and_others_go_on(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("good", 1)
        cluster.broker.script(ApiKey.METADATA, edited(_forbidden_t))
        async with make_producer(cluster.bootstrap_servers) as producer:
            bad = [producer.send("t", value) for value in numbered(20)]
            good = producer.send("good", b"v")
            turns, ended_in = Turns(), []
            for delivery in bad:
                delivery.add_done_callback(lambda _: ended_in.append(turns.count))
            assert (await good).offset == 0
            for delivery in bad:
                assert isinstance(await end_of(delivery), TopicAuthorizationException)
            turns.stop()
            assert len(set(ended_in)) == 20
            assert all_memory_free(producer)


@virtual
async def test_an_unauthorized_topic_is_not_requested_repeatedly(world: World) -> None:
    async with ScriptedCluster() as cluster:
        cluster.broker.always(ApiKey.METADATA, edited(_forbidden))
        async with make_producer(cluster.bootstrap_servers, metadata_max_age_ms=300_000) as producer:
            for _ in range(3):
                before = cluster.broker.count(ApiKey.METADATA)
                assert isinstance(await end_of(producer.send("t", b"v")), TopicAuthorizationException)
                await asyncio.sleep(90)
                assert cluster.broker.count(ApiKey.METADATA) - before <= 1


def _forbidden_t(response: Any) -> None:
    for topic in response.topics:
        if topic.name == "t":
            topic.error_code, topic.partitions = ErrorCode.TOPIC_AUTHORIZATION_FAILED, []


def _forbidden(response: Any) -> None:
    for topic in response.topics:
        topic.error_code, topic.partitions = ErrorCode.TOPIC_AUTHORIZATION_FAILED, []


@pytest.mark.parametrize("partitions", [1, 1000])
async def test_a_batch_does_not_expire_while_its_answer_is_in_the_socket(partitions: int) -> None:
    """The loop stands still until its time is over, and the Sender is the first that runs after that."""
    with ThreadedCluster() as cluster:
        cluster.create_topic("t", partitions)
        config = {"linger_ms": 0, "request_timeout_ms": 200, "delivery_timeout_ms": 300}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"first", partition=0)
            deliveries = [producer.send("t", b"v", partition=partition) for partition in range(partitions)]
            sent = 1 + partitions
            while producer.metrics()["record-send-total"] < sent:  # noqa: ASYNC110 - until all have left, and not longer
                await asyncio.sleep(0)
            time.sleep(0.6)  # noqa: ASYNC251 - they are answered meanwhile
            deliveries.append(producer.send("t", b"later", partition=0))
            await wait_all(deliveries)
            assert [delivery.exception() for delivery in deliveries] == [None] * sent


@virtual
async def test_a_broker_that_answers_all_the_time_keeps_no_record_of_a_silent_one_alive(world: World) -> None:
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("answered", 1, assignments=[[0]])
        cluster.create_topic("silent", 1, assignments=[[1]])
        config = {"linger_ms": 0, "request_timeout_ms": 800, "delivery_timeout_ms": 1000}
        async with make_producer(cluster.bootstrap_servers, **config, enable_idempotence=False) as producer:
            _ = await producer.partitions_for("answered"), await producer.partitions_for("silent")
            cluster.brokers[1].always(ApiKey.PRODUCE, never())
            loop = asyncio.get_running_loop()
            began = loop.time()
            silent = producer.send("silent", b"v")
            ended: list[float] = []
            silent.add_done_callback(lambda _: ended.append(loop.time() - began))
            while not ended:
                await producer.send("answered", b"v")
            assert 1 <= ended[0] < 1.02


@virtual
async def test_memory_of_an_expired_batch_goes_to_waiting_records(world: World) -> None:
    """What expires in the queue frees memory in the very pass in which nothing else happens."""
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("t", assignments=[[0], [1]])
        config = {"batch_size": 1000, "buffer_memory": 1000, "max_block_ms": 1000, **SHORT}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            _ = await producer.send("t", b"v", partition=1)
            await cluster.stop_node(0)
            lost = producer.send("t", bytes(500), partition=0)
            waiting = producer.send("t", bytes(600), partition=1)
            assert isinstance(await end_of(lost), TimeoutException)
            assert not isinstance(await end_of(waiting), BufferExhaustedException)


@pytest.mark.parametrize("without", [["a"], ["b"], ["a", "b"], []])
@virtual
async def test_a_request_names_its_topics_unless_the_ids_of_all_are_known(world: World, without: list[str]) -> None:
    def hide(response: MetadataResponse) -> None:
        for topic in response.topics:
            if topic.name in without:
                topic.topic_id = UUID(int=0)

    async with ScriptedCluster() as cluster:
        for topic in "ab":
            cluster.create_topic(topic, 1)
        cluster.broker.always(ApiKey.METADATA, edited(hide))
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for topic in "ab":
                _ = await producer.partitions_for(topic)
            _ = await asyncio.gather(*(producer.send(topic, b"v") for topic in "ab"))
        (version,) = (header.api_version for header, _ in cluster.broker.requests if header.api_key == ApiKey.PRODUCE)
        if without:
            assert version == FIRST_WITH_TOPIC_IDS - 1
        else:
            assert version >= FIRST_WITH_TOPIC_IDS
        assert cluster.values("a") == cluster.values("b") == [b"v"]


# Many batches end together


def slow_clock(producer: KafkaProducer) -> None:
    """From now on the time for one turn of the loop is over whenever a batch has ended."""
    for one in (parts_of(producer).completer._slice, sender_of(producer)._lot._expiring):
        one._time = itertools.count(0.0).__next__


async def begun(deliveries: list[Delivery]) -> None:
    """Returns when the first has ended."""
    ended = asyncio.Event()
    deliveries[0].add_done_callback(lambda _: ended.set())
    await ended.wait()


async def most_in_a_turn(deliveries: list[Delivery]) -> int:
    """The most of them that end between two turns of the loop."""
    ended = most = 0
    while ended < len(deliveries):
        await asyncio.sleep(0)
        before, ended = ended, sum(delivery.done() for delivery in deliveries)
        most = max(most, ended - before)
    return most


@pytest.mark.parametrize("end", ["alone", "closed again", "cancelled", "failed"])
async def test_the_loop_has_its_turns_while_close_ends_many_batches(end: str) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 40)
        producer = make_producer(cluster.bootstrap_servers, linger_ms=5000)
        async with producer:
            await producer.partitions_for("t")
            deliveries = [producer.send("t", b"v", partition=partition) for partition in range(40)]
            ends: list[Delivery] = []
            for delivery in deliveries:
                delivery.add_done_callback(ends.append)
            slow_clock(producer)
            closing = asyncio.create_task(producer.close(0))
            if end == "alone":
                assert await most_in_a_turn(deliveries) <= 4
            else:
                await begun(deliveries)
                assert not deliveries[-1].done()
                if end == "closed again":
                    await producer.close(0)
                elif end == "cancelled":
                    closing.cancel()
                else:
                    sender_of(producer).fail(KafkaError("unusable"))
            await asyncio.wait([closing])
            await asyncio.sleep(0)
            assert {delivery.outcome for delivery in deliveries} == {Outcome.NOT_SENT}
            await turns(2)
            assert ends == deliveries
            assert cluster.broker.count(ApiKey.PRODUCE) == 0


@interpreted_only
@pytest.mark.parametrize("how", ["closed again", "out of time", "cancelled"])
async def test_all_callers_are_woken_whenever_another_close_comes(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.broker.always(ApiKey.PRODUCE, never())
        for between in range(20):
            producer = make_producer(cluster.bootstrap_servers, linger_ms=5000, batch_size=5000, buffer_memory=5000)
            await producer.start()
            await producer.partitions_for("t")
            callers = [asyncio.create_task(end_of(producer.enqueue("t", bytes(900)))) for _ in range(20)]
            await turns(3)
            assert sum(caller.done() for caller in callers) < 10
            with monkeypatch.context() as patched:
                patched.setattr(time_slice, "TIME_SLICE", 0.0)
                first = asyncio.create_task(producer.close(0.001 if how == "out of time" else 0))
                await turns(between)
                if how == "cancelled":
                    first.cancel()
                await producer.close(0)
                await asyncio.wait([first])
                await turns(len(callers))
            assert all(caller.done() for caller in callers)


@pytest.mark.parametrize("then", ["nothing", "closed", "crashed", "failed again", "a send"])
async def test_the_loop_has_its_turns_while_many_records_of_an_unusable_producer_fail(then: str) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 40)
        async with make_producer(cluster.bootstrap_servers, linger_ms=5000) as producer:
            await producer.partitions_for("t")
            parked = [producer.send("unknown", b"v") for _ in range(10)]
            deliveries = [producer.send("t", b"v", partition=partition) for partition in range(40)]
            slow_clock(producer)
            sender_of(producer).fail(KafkaError("unusable"))
            if then == "nothing":
                assert await most_in_a_turn([*parked, *deliveries]) <= 5  # the Sender's pass ends some, too
            else:
                await begun(deliveries)
                assert not deliveries[-1].done()
                if then == "closed":
                    await producer.close(0)
                elif then == "crashed":
                    sender_of(producer).crashed(ValueError("a bug"))
                elif then == "failed again":
                    sender_of(producer).fail(KafkaError("no longer usable"))
                else:
                    with pytest.raises(IllegalStateException, match="unusable"):
                        _ = producer.send("t", b"v")
            await producer.flush()
            assert {delivery.outcome for delivery in [*parked, *deliveries]} == {Outcome.NOT_SENT}
            assert cluster.broker.count(ApiKey.PRODUCE) == 0
            await turns(5)
            assert {link.state for link in parts_of(producer).client.links.values()} <= {
                LinkState.CLOSED,
                LinkState.BACKOFF,
            }


@pytest.mark.parametrize("closed", [False, True])
async def test_the_loop_has_its_turns_while_a_transaction_with_many_batches_is_aborted(closed: bool) -> None:
    async with ScriptedCluster() as cluster:
        cluster.create_topic("t", 40)
        async with make_producer(cluster.bootstrap_servers, linger_ms=5000, transactional_id="x") as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.partitions_for("t")
            deliveries = [producer.send("t", b"v", partition=partition) for partition in range(40)]
            slow_clock(producer)
            aborting = asyncio.create_task(producer.abort_transaction())
            if closed:
                await begun(deliveries)
                assert not deliveries[-1].done()
                await producer.close(0)
                with pytest.raises(IllegalStateException, match="given up: the producer was closed"):
                    await aborting
            else:
                assert await most_in_a_turn(deliveries) <= 2
                await aborting
            assert all(isinstance(delivery.exception(), TransactionAbortedException) for delivery in deliveries)
            assert cluster.broker.count(ApiKey.PRODUCE) == 0
            if not closed:
                await producer.begin_transaction()
                sent = producer.send("t", b"v", partition=39)
                await producer.commit_transaction()
                assert sent.result().offset == 0
