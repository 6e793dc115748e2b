"""Units of work on real Kafka: confluent-kafka's read_committed consumer judges what is there."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from aioproducer import ConsumerGroupMetadata, DeliveryError, KafkaProducer, Outcome, TopicPartition
from aioproducer.admin import KafkaAdmin
from aioproducer.errors import RecordTooLargeException
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.conformance import foreign_consumer
from tests.conformance.topics import create_topic

log = logging.getLogger(__name__)

PARTITIONS = 3
HANDLERS = 50


def read_committed(servers: str, topic: str) -> dict[int, list[bytes]]:
    """The values of each partition, as a foreign consumer sees them."""
    found = foreign_consumer.read_committed(servers, topic, PARTITIONS)
    return {partition: [value for _, value in records if value is not None] for partition, records in found.items()}


class Writers:
    """Handlers that write each unit to two topics, and remember in which order their blocks ended, and how."""

    def __init__(self, producer: KafkaProducer, first: str, second: str) -> None:
        self._producer = producer
        self._topics = (first, second)
        self._random = Random(24)
        self._stopped = False
        self.ended: list[bytes] = []
        self.committed: set[bytes] = set()
        self.not_sent: set[bytes] = set()
        self.unknown: set[bytes] = set()

    def stop(self) -> None:
        self._stopped = True

    async def run(self, handler: int) -> None:
        number = 0
        while not self._stopped:
            await self.one(b"%d-%d" % (handler, number))
            number += 1

    async def one(self, name: bytes, *, dropped: bool | None = None) -> None:
        drop = self._random.random() < 0.1 if dropped is None else dropped
        try:
            async with self._producer.unit() as unit:
                for topic in self._topics:
                    await unit.send(topic, name, key=b"%d" % (len(self.ended) % 20))
                if drop:
                    raise ZeroDivisionError
                self.ended.append(name)
        except ZeroDivisionError:
            self.not_sent.add(name)
        except DeliveryError as error:
            (self.not_sent if error.outcome is Outcome.NOT_SENT else self.unknown).add(name)
        else:
            self.committed.add(name)

    def judge(self, logs: list[dict[int, list[bytes]]]) -> None:
        """``logs``: of both topics."""
        place = {name: number for number, name in enumerate(self.ended)}
        counts = [Counter(name for values in found.values() for name in values) for found in logs]
        for count in counts:
            assert max(count.values(), default=1) == 1, "a unit is there once"
            assert self.committed <= count.keys(), "a unit that was reported as committed is there"
            assert not self.not_sent & count.keys(), "a unit that was not sent is not there"
        assert counts[0].keys() == counts[1].keys(), "a unit is in both topics or in none"
        for found in logs:
            for values in found.values():
                order = [place[name] for name in values]
                assert order == sorted(order), "units are in the order of their ends"


async def test_concurrent_units_are_whole_once_and_in_order(kafka: ApacheKafka) -> None:
    for topic in ("unit-orders", "unit-audit"):
        await create_topic(kafka, topic, partitions=PARTITIONS)
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="units") as producer:
        await producer.init_transactions()
        writers = Writers(producer, "unit-orders", "unit-audit")
        await asyncio.gather(*(writers.one(b"%d" % number) for number in range(1000)))
        metrics = producer.metrics()
        assert metrics["unit-committed-total"] == len(writers.committed) == len(writers.ended)
        assert metrics["unit-commit-total"] < 100, "units share commits"
    writers.judge(
        [
            await asyncio.to_thread(read_committed, kafka.bootstrap_servers, topic)
            for topic in ("unit-orders", "unit-audit")
        ]
    )


async def test_a_poisoned_unit_and_refused_offsets_fail_alone(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "unit-small", partitions=PARTITIONS, configs={"max.message.bytes": "500"})
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="poisoned") as producer:
        await producer.init_transactions()

        async def one(number: int) -> DeliveryError | None:
            try:
                async with producer.unit() as unit:
                    await unit.send("unit-small", b"%d" % number + b"x" * (600 if number == 13 else 0), partition=0)
                    if number == 21:
                        gone = ConsumerGroupMetadata("unit-group", 7, "gone")
                        await unit.send_offsets({TopicPartition("unit-small", 0): 1}, gone)
            except DeliveryError as error:
                return error
            return None

        results = await asyncio.gather(*(one(number) for number in range(50)))
    failed = {number: result for number, result in enumerate(results) if result is not None}
    assert {number: error.outcome for number, error in failed.items()} == dict.fromkeys((13, 21), Outcome.NOT_SENT)
    assert isinstance(failed[13], RecordTooLargeException)
    found = await asyncio.to_thread(read_committed, kafka.bootstrap_servers, "unit-small")
    assert found[0] == [b"%d" % number for number in range(50) if number not in failed]


@pytest.fixture(params=["4.3.1", "3.9.2"])
def kafka_without_new_topics(request: pytest.FixtureRequest) -> Iterator[ApacheKafka]:
    """One node, on which no topic is made by asking for it."""
    with running_kafka(request.param, configs={"auto.create.topics.enable": False}) as kafka:
        yield kafka


async def test_a_record_for_a_topic_that_was_deleted_fails_its_unit_alone(
    kafka_without_new_topics: ApacheKafka,
) -> None:
    """Brokers ask to try again for ever, so the record uses up delivery.timeout.ms: not that of the other units."""
    servers = kafka_without_new_topics.bootstrap_servers
    for topic in ("unit-others", "unit-deleted"):
        await create_topic(kafka_without_new_topics, topic, partitions=PARTITIONS)
    async with (
        KafkaAdmin(bootstrap_servers=servers) as admin,
        KafkaProducer(
            bootstrap_servers=servers, transactional_id="late", delivery_timeout_ms=4000, request_timeout_ms=2000
        ) as producer,
    ):
        await producer.init_transactions()

        async def one(number: int) -> DeliveryError | None:
            try:
                async with producer.unit() as unit:
                    await unit.send("unit-others", b"%d" % number, partition=0)
                    if number in (0, 7):
                        await unit.send("unit-deleted", b"%d" % number, partition=0)
            except DeliveryError as error:
                return error
            return None

        assert await one(0) is None
        await admin.delete_topic("unit-deleted")
        results = await asyncio.gather(*(one(number) for number in range(1, 20)))
    failed = {number: result for number, result in enumerate(results, 1) if result is not None}
    assert {number: error.outcome for number, error in failed.items()} == {7: Outcome.NOT_SENT}
    assert failed[7].topic_partition == ("unit-deleted", 0)
    found = await asyncio.to_thread(read_committed, servers, "unit-others")
    assert found[0] == [b"%d" % number for number in range(20) if number != 7]


def crash(kafka: ApacheKafka, node_id: int) -> None:
    kafka.kill_node(node_id)
    kafka.start_node(node_id)


def restart(kafka: ApacheKafka, node_id: int) -> None:
    kafka.stop_node(node_id)
    kafka.start_node(node_id)


@pytest.mark.parametrize("failure", [crash, pytest.param(restart, marks=pytest.mark.long)])
async def test_brokers_fail_under_units(
    kafka_cluster: ApacheKafka, failure: Callable[[ApacheKafka, int], None]
) -> None:
    """Every node in turn, so that leaders of partitions and the coordinator are among them."""
    topics = [f"unit-{what}-{failure.__name__}" for what in ("orders", "audit")]
    for topic in topics:
        await create_topic(
            kafka_cluster, topic, partitions=PARTITIONS, replication_factor=3, configs={"min.insync.replicas": "2"}
        )
    async with KafkaProducer(
        bootstrap_servers=kafka_cluster.bootstrap_servers, transactional_id=f"under {failure.__name__}"
    ) as producer:
        await producer.init_transactions()
        writers = Writers(producer, *topics)
        running = [asyncio.create_task(writers.run(handler)) for handler in range(HANDLERS)]
        for node_id in (1, 2, 3):
            before = len(writers.committed)
            await asyncio.to_thread(failure, kafka_cluster, node_id)
            async with asyncio.timeout(60):
                while len(writers.committed) < before + HANDLERS:  # noqa: ASYNC110 - no event is set by a commit
                    await asyncio.sleep(0.05)
        writers.stop()
        await asyncio.gather(*running)
    log.info(
        "%d units committed, %d not sent, %d unknown", *map(len, (writers.committed, writers.not_sent, writers.unknown))
    )
    servers = kafka_cluster.bootstrap_servers
    writers.judge([await asyncio.to_thread(read_committed, servers, topic) for topic in topics])
