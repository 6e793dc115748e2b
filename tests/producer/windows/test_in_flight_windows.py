"""The cases of KIP-1269's test plan, unit and integration, and what lies between them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from aioproducer import KafkaProducer, wait_all
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.windows.in_flight_windows import InFlightWindows
from aioproducer.protocol.api_key import ApiKey
from tests.producer.simulations.standing_loop import make_ids, sequences_of
from tests.support.inside import parts_of
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import make_producer
from tests.support.scripted_broker import Held, ScriptedCluster

pytestmark = [pytest.mark.usefixtures("no_leaks"), pytest.mark.timeout(20)]


def make_queue(partition: int = 0, leader: int = 1) -> PartitionQueue:
    queue = PartitionQueue("t", partition, PartitionSequences(make_ids()))
    queue.leader = leader
    return queue


class TestRules:
    def test_the_window_is_what_the_leader_said_last(self) -> None:
        windows, queue = InFlightWindows(), make_queue()
        for told in (20, 7, 100, 5):
            windows.announced(queue, 1, told)
            assert sequences_of(queue).window == told

    def test_an_answer_of_a_former_leader_is_ignored(self) -> None:
        windows, queue = InFlightWindows(), make_queue()
        windows.announced(queue, 2, 20)
        assert sequences_of(queue).window == 5

    def test_a_new_leader_begins_with_five(self) -> None:
        windows, queue = InFlightWindows(), make_queue()
        windows.announced(queue, 1, 20)
        queue.leader = 2
        windows.leader_changed(queue)
        assert sequences_of(queue).window == 5

    def test_a_new_connection_begins_with_five(self) -> None:
        windows, lost, kept = InFlightWindows(), make_queue(0, leader=1), make_queue(1, leader=2)
        windows.announced(lost, 1, 20)
        windows.announced(kept, 2, 20)
        windows.connection_lost(1)
        assert (sequences_of(lost).window, sequences_of(kept).window) == (5, 20)

    def test_a_connection_to_the_leader_before_says_nothing_of_the_present_one(self) -> None:
        windows, queue = InFlightWindows(), make_queue(leader=1)
        windows.announced(queue, 1, 20)
        queue.leader = 2
        windows.leader_changed(queue)
        windows.announced(queue, 2, 30)
        windows.connection_lost(1)
        assert sequences_of(queue).window == 30

    @pytest.mark.parametrize("nonsense", [0, -1, -(2**31)])
    def test_nonsense_stops_nobody(self, nonsense: int) -> None:
        windows, queue = InFlightWindows(), make_queue()
        windows.announced(queue, 1, nonsense)
        assert sequences_of(queue).window == 1

    def test_without_idempotence_there_is_no_window(self) -> None:
        windows, queue = InFlightWindows(), PartitionQueue("t", 0, None)
        queue.leader = 1
        windows.announced(queue, 1, 20)
        windows.leader_changed(queue)
        windows.connection_lost(1)
        assert queue.sequences is None


def create(cluster: ScriptedCluster, topic: str, retain: int, replicas: int = 1) -> None:
    cluster.create_topic(topic, 1, replicas, configs={"producer.state.batches.to.retain": retain})


async def settle() -> None:
    """Everything that can be sent is sent, and has come: all of this runs in one loop, over loopback."""
    for _ in range(50):
        await asyncio.sleep(0.001)


async def learn(producer: KafkaProducer, *topics: str) -> None:
    """Two records: the first of a producer id goes alone."""
    for topic in topics:
        for _ in range(2):
            await producer.send(topic, b"first")


def send_batches(producer: KafkaProducer, topic: str, count: int) -> list[Any]:
    """As many batches of one record each."""
    return [producer.send(topic, b"%d" % number) for number in range(count)]


def batches_in(cluster: ScriptedCluster, held: Held) -> Counter[str]:
    """Batches in the requests that wait, by their topic."""
    names = {topic.id: topic.name for topic in cluster.topics}
    return Counter(names[topic.topic_id] for exchange in held.exchanges for topic in exchange.request.topic_data)


async def most_in_flight(cluster: ScriptedCluster, max_in_flight: int, *topics: str) -> dict[str, int]:
    """How many batches of each topic are unanswered when 40 of each want to go."""
    held = Held()
    async with make_producer(
        cluster.bootstrap_servers, batch_size=0, max_in_flight_requests_per_connection=max_in_flight
    ) as producer:
        await learn(producer, *topics)
        cluster.broker.always(ApiKey.PRODUCE, held)
        deliveries = [delivery for topic in topics for delivery in send_batches(producer, topic, 40)]
        await settle()
        seen = batches_in(cluster, held)
        cluster.broker.always(ApiKey.PRODUCE, None)
        held.release()
        await wait_all(deliveries)
        for delivery in deliveries:
            delivery.result()
    for topic in topics:
        assert cluster.values(topic) == [b"first"] * 2 + [b"%d" % number for number in range(40)]
    return seen


class TestTheKipsTestPlan:
    async def test_in_flight_1_and_retain_20_is_one_request(self) -> None:
        async with ScriptedCluster() as cluster:
            create(cluster, "wide", 20)
            assert await most_in_flight(cluster, 1, "wide") == {"wide": 1}

    async def test_in_flight_20_and_retain_5_is_five_batches(self) -> None:
        async with ScriptedCluster() as cluster:
            create(cluster, "narrow", 5)
            assert await most_in_flight(cluster, 20, "narrow") == {"narrow": 5}

    async def test_in_flight_20_and_retain_20_is_twenty_batches(self) -> None:
        async with ScriptedCluster() as cluster:
            create(cluster, "wide", 20)
            assert await most_in_flight(cluster, 20, "wide") == {"wide": 20}

    async def test_two_topics_keep_to_their_own_windows(self) -> None:
        async with ScriptedCluster() as cluster:
            create(cluster, "narrow", 5)
            create(cluster, "wide", 20)
            assert await most_in_flight(cluster, 30, "narrow", "wide") == {"narrow": 5, "wide": 20}

    async def test_in_a_transaction_the_window_is_the_same(self) -> None:
        async with ScriptedCluster() as cluster:
            create(cluster, "wide", 20)
            held = Held()
            async with make_producer(
                cluster.bootstrap_servers,
                batch_size=0,
                max_in_flight_requests_per_connection=30,
                transactional_id="wide",
            ) as producer:
                await producer.init_transactions()
                async with producer.transaction():
                    await learn(producer, "wide")
                    cluster.broker.always(ApiKey.PRODUCE, held)
                    deliveries = send_batches(producer, "wide", 40)
                    await settle()
                    assert batches_in(cluster, held) == {"wide": 20}
                    cluster.broker.always(ApiKey.PRODUCE, None)
                    held.release()
                await wait_all(deliveries)
            assert cluster.values("wide") == [b"first"] * 2 + [b"%d" % number for number in range(40)]

    async def test_a_window_that_is_changed_meanwhile_is_learned_with_the_next_answer(self) -> None:
        async with ScriptedCluster() as cluster:
            create(cluster, "t", 5)
            async with make_producer(
                cluster.bootstrap_servers, batch_size=0, max_in_flight_requests_per_connection=30
            ) as producer:
                await learn(producer, "t")
                for retain in (20, 7, 12):
                    cluster.alter_topic_configs("t", {"producer.state.batches.to.retain": retain})
                    await producer.send("t", b"learns it")
                    held = Held()
                    cluster.broker.always(ApiKey.PRODUCE, held)
                    deliveries = send_batches(producer, "t", 40)
                    await settle()
                    assert batches_in(cluster, held) == {"t": retain}
                    cluster.broker.always(ApiKey.PRODUCE, None)
                    held.release()
                    await wait_all(deliveries)

    async def test_an_old_broker_means_five_whatever_the_topics_config(self) -> None:
        async with ScriptedCluster(old_nodes=[0]) as cluster:
            create(cluster, "wide", 20)
            assert await most_in_flight(cluster, 20, "wide") == {"wide": 5}

    @pytest.mark.parametrize("appended", [True, False])
    async def test_a_leader_change_from_new_to_old_while_twenty_are_in_flight(self, appended: bool) -> None:
        """Nothing new leaves until fewer than 5 are unresolved, and nothing is doubled.

        Of what the new leader had appended when it went, the old one knows the last 5 only: the batches before them are
        in the log, and end as unknown.
        """
        async with ScriptedCluster(2, old_nodes=[1]) as cluster:
            cluster.create_topic("wide", assignments=[[0, 1]], configs={"producer.state.batches.to.retain": 20})
            held, on_old = Held(), Held()
            async with make_producer(
                cluster.bootstrap_servers, batch_size=0, max_in_flight_requests_per_connection=20
            ) as producer:
                await learn(producer, "wide")
                cluster.broker.always(ApiKey.PRODUCE, held)
                deliveries = send_batches(producer, "wide", 40)
                await settle()
                assert len(held.exchanges) == 20
                if appended:
                    for exchange in held.exchanges:
                        exchange.handle()
                cluster.brokers[1].always(ApiKey.PRODUCE, on_old)
                cluster.move_leader("wide", 0, 1)
                cluster.broker.drop_connections()
                await cluster.brokers[1].received(ApiKey.PRODUCE)
                await settle()
                assert len(on_old.exchanges) == 1, "retries go one at a time, lowest sequence first"
                most = 0
                while not all(delivery.done() for delivery in deliveries):
                    most = max(most, len(on_old.exchanges))
                    on_old.release(min(1, len(on_old.exchanges)))
                    await settle()
                assert most <= 5
            ends = [delivery.exception() for delivery in deliveries]
            values = cluster.values("wide")[2:]
            assert len(values) == len(set(values)), "nothing is doubled"
            assert values == sorted(values, key=lambda value: int(value or 0)), "nor reordered"
            assert {b"%d" % number for number, end in enumerate(ends) if end is None} <= set(values)
            assert ends == [None] * len(ends), "of what it no longer remembers, the leader says whether it has it"

    async def test_the_window_is_learned_anew_from_the_next_leader(self) -> None:
        async with ScriptedCluster(2) as cluster:
            create(cluster, "wide", 20, replicas=2)
            leader = cluster.leader("wide")
            async with make_producer(
                cluster.bootstrap_servers,
                batch_size=0,
                max_in_flight_requests_per_connection=20,
                metadata_max_age_ms=20,
            ) as producer:
                await learn(producer, "wide")
                cluster.move_leader("wide", 0, 1 - leader)
                while (await producer.partitions_for("wide"))[0].leader == leader:
                    await settle()
                held = Held()
                cluster.brokers[1 - leader].always(ApiKey.PRODUCE, held)
                deliveries = send_batches(producer, "wide", 40)
                await cluster.brokers[1 - leader].received(ApiKey.PRODUCE, 5)
                await settle()
                assert len(held.exchanges) == 5
                held.release()
                await cluster.brokers[1 - leader].received(ApiKey.PRODUCE, 25)
                await settle()
                assert len(held.exchanges) == 20
                cluster.brokers[1 - leader].always(ApiKey.PRODUCE, None)
                held.release()
                await wait_all(deliveries)
                assert cluster.values("wide")[2:] == [b"%d" % number for number in range(40)]

    async def test_a_connection_that_reauthenticates_is_not_lost(self) -> None:
        async with ScriptedCluster() as cluster:
            create(cluster, "wide", 20)
            async with make_producer(cluster.bootstrap_servers) as producer:
                await learn(producer, "wide")
                link = parts_of(producer).client.links.get(0)
                assert link is not None
                link.reauthenticating = True
                link.changed()  # as a socket does that takes bytes again
                assert producer.explain("wide", 0).window == 20
                link.reauthenticating = False

    async def test_a_reconnect_begins_with_five(self) -> None:
        async with ScriptedCluster() as cluster:
            create(cluster, "wide", 20)
            async with make_producer(
                cluster.bootstrap_servers, batch_size=0, max_in_flight_requests_per_connection=20
            ) as producer:
                await learn(producer, "wide")
                cluster.broker.drop_connections()
                held = Held()
                cluster.broker.always(ApiKey.PRODUCE, held)
                await settle()
                deliveries = send_batches(producer, "wide", 40)
                await cluster.broker.received(ApiKey.PRODUCE, 2 + 5)
                await settle()
                assert len(held.exchanges) == 5
                cluster.broker.always(ApiKey.PRODUCE, None)
                held.release()
                await wait_all(deliveries)
