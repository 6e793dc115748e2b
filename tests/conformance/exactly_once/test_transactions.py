"""Transactions on real Kafka, with the second protocol (4.3.1) and the first (3.9.2): a foreign read_committed consumer
sees exactly what was committed, in order."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

import pytest

from aioproducer import KafkaProducer, ProducerRecord, TopicPartition, wait_all
from aioproducer.errors import KafkaError, ProducerFencedException
from aioproducer.producer.producer import core_of
from aioproducer.testing.kafka.apache_kafka import QUICK_FAILOVER, ApacheKafka
from aioproducer.testing.pytest_kafka import require_kafka
from aioproducer.testing.transactions import campaign
from aioproducer.testing.transactions.plan import Plan
from tests.conformance.topics import assert_committed, create_topic
from tests.support.fencing import NEWER, WAYS, check_fenced
from tests.support.kafka_releases import RELEASES

log = logging.getLogger(__name__)

PARTITIONS = 6


async def test_exactly_the_committed_ones_are_read(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "committed", partitions=PARTITIONS)
    expected: dict[int, list[bytes | None]] = defaultdict(list)
    async with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, transactional_id="committed", linger_ms=1
    ) as producer:
        await producer.init_transactions()
        for number in range(60):
            await producer.begin_transaction()
            records = [ProducerRecord("committed", b"%d %d" % (number, i), partition=i % PARTITIONS) for i in range(75)]
            deliveries = [await producer.enqueue(record) for record in records]
            if number % 3:
                await producer.commit_transaction()
                for record in records:
                    assert record.partition is not None
                    expected[record.partition].append(record.value)
            else:
                if number % 2:
                    await wait_all(deliveries)
                await producer.abort_transaction()
    await assert_committed(kafka, "committed", PARTITIONS, expected)


async def test_killed_and_restarted_under_the_same_id(kafka: ApacheKafka) -> None:
    """Each run leaves a transaction open, and the next one fences it."""
    await create_topic(kafka, "restarted", partitions=1)
    expected: list[bytes | None] = []
    for run in range(10):
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="restarted")
        await producer.start()
        await producer.init_transactions()
        async with producer.transaction():
            _ = producer.send("restarted", b"run %d" % run)
        expected.append(b"run %d" % run)
        await producer.begin_transaction()
        await producer.send("restarted", b"run %d, left open" % run)
        # As a process that is killed: connections end, and nobody aborts.
        core_of(producer).sender.abort_at_once(KafkaError("killed"))
        await core_of(producer).sender.stop(0.0)
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="restarted") as last:
        await last.init_transactions()
    await assert_committed(kafka, "restarted", 1, {0: expected})


async def test_the_older_of_two_producers_is_fenced(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "fenced", partitions=2)
    for way in WAYS:
        configs: dict[str, Any] = {"bootstrap_servers": kafka.bootstrap_servers, "transactional_id": way.__name__}
        async with KafkaProducer(**configs) as older, KafkaProducer(**configs) as newer:
            await check_fenced(way, older, newer, "fenced")
    await assert_committed(kafka, "fenced", 2, {0: [NEWER] * len(WAYS)})


async def test_offsets_are_committed_with_the_transaction(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "offsets", partitions=2)
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="offsets") as producer:
        await producer.init_transactions()
        for offset, commits in ((5, True), (9, False)):
            await producer.begin_transaction()
            await producer.send("offsets", b"%d" % offset, partition=0)
            await producer.send_offsets_to_transaction({TopicPartition("offsets", 1): offset}, "readers")
            await (producer.commit_transaction() if commits else producer.abort_transaction())
    described = await kafka.tools.run(
        *("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", kafka.bootstrap_servers),
        *("--describe", "--group", "readers"),
    )
    (line,) = [
        line for line in described.stdout.decode().splitlines() if line.split()[:3] == ["readers", "offsets", "1"]
    ]
    assert line.split()[3] == "5"


async def test_an_open_transaction_is_described_and_aborted_by_operators(kafka: ApacheKafka) -> None:
    await create_topic(kafka, "operated", partitions=2)
    async with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="operated") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        for partition in range(2):
            await producer.send("operated", b"open", partition=partition)
        listed = await kafka.tools.transactions("list")
        assert [row["TransactionState"] for row in listed if row["TransactionalId"] == "operated"] == ["Ongoing"]
        (described,) = await kafka.tools.transactions("describe", "--transactional-id", "operated")
        assert set(described["TopicPartitions"].split(",")) == {"operated-0", "operated-1"}
        (writing,) = await kafka.tools.transactions("describe-producers", "--topic", "operated", "--partition", "1")
        assert writing["ProducerId"] == described["ProducerId"]
        assert writing["CurrentTransactionStartOffset"] == "0"
        await producer.abort_transaction()
        (described,) = await kafka.tools.transactions("describe", "--transactional-id", "operated")
        assert described["TransactionState"] == "CompleteAbort"
        (writing,) = await kafka.tools.transactions("describe-producers", "--topic", "operated", "--partition", "1")
        assert writing["CurrentTransactionStartOffset"] == "None"


async def test_an_operator_terminates_a_transaction(kafka_431: ApacheKafka) -> None:
    """Kafka 3.9 has no such command."""
    await create_topic(kafka_431, "terminated", partitions=1)
    async with KafkaProducer(bootstrap_servers=kafka_431.bootstrap_servers, transactional_id="terminated") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("terminated", b"open")
        await kafka_431.tools.transactions("forceTerminateTransaction", "--transactionalId", "terminated")
        with pytest.raises(ProducerFencedException, match="close this one"):
            await producer.commit_transaction()
    await assert_committed(kafka_431, "terminated", 1, {})


@pytest.mark.parametrize("version", RELEASES)
async def test_a_campaign(version: str) -> None:
    """Producers killed, stopped and replaced while brokers bounce: docs/campaigns has the long ones."""
    require_kafka(version)
    plan = Plan(transactions=24, records=120, kills=4, stops=1, bounces=1)
    async with ApacheKafka(version, nodes=3, configs=QUICK_FAILOVER) as kafka:
        report = await campaign.run(kafka, plan, log.info)
    assert not report.problems(), report.markdown()
    assert len(report.interrupted) == 5
    assert report.protocol == (2 if version == "4.3.1" else 1)
