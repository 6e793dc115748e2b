"""Two-phase commit (KIP-939): as far as Kafka 4.3.1 answers it, and the rest on the embedded broker.

Kafka 4.3.1 has InitProducerId 6 if ``unstable.api.versions.enable`` is true. Its coordinator accepts ``enable2Pc``, and
answers ``UNSUPPORTED_VERSION`` to ``keepPreparedTxn``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from aioproducer import KafkaProducer, PreparedTxnState
from aioproducer.admin import KafkaAdmin
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import (
    UnsupportedVersionException,
)
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from aioproducer.testing.pytest_kafka import running_kafka
from tests.conformance.foreign_consumer import read_committed
from tests.conformance.topics import assert_committed, create_topic
from tests.conformance.two_phase_application import CRASHED, PARTITIONS, RECOVERING, STEPS, TOPIC, Database

CHECKOUT = str(Path(__file__).parents[3])
UNSTABLE = {"unstable.api.versions.enable": True}
ALLOWED = {"transaction.two.phase.commit.enable": True, **UNSTABLE}


@pytest.fixture(scope="module")
def kafka_of_two_phases() -> Iterator[ApacheKafka]:
    with running_kafka("4.3.1", configs={**ALLOWED, "transaction.max.timeout.ms": 1000}) as kafka:
        yield kafka


def two_phases(kafka: ApacheKafka, transactional_id: str) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        transactional_id=transactional_id,
        transaction_two_phase_commit_enable=True,
    )


@asynccontextmanager
async def prepared(kafka: ApacheKafka, topic: str) -> AsyncIterator[tuple[KafkaProducer, PreparedTxnState]]:
    """A producer and its prepared transaction of one record; the topic has the name of the transactional id."""
    await create_topic(kafka, topic)
    async with two_phases(kafka, topic) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        _ = await producer.enqueue(topic, b"a")
        yield producer, await producer.prepare_transaction()


class TestKafka431:
    @pytest.mark.parametrize("same", [True, False])
    async def test_a_prepared_transaction_is_completed(self, kafka_of_two_phases: ApacheKafka, same: bool) -> None:
        kafka, topic = kafka_of_two_phases, f"completed-{same}"
        async with prepared(kafka, topic) as (producer, state):
            assert await producer.complete_transaction(state if same else PreparedTxnState()) is same
            async with producer.transaction():
                _ = await producer.enqueue(topic, b"b")
        await assert_committed(kafka, topic, 1, {0: [b"a", b"b"] if same else [b"b"]})

    async def test_it_has_no_time_out_and_survives_its_producer(self, kafka_of_two_phases: ApacheKafka) -> None:
        """``transaction.max.timeout.ms`` is a second here, less than any transaction may have; Kafka looks for those
        that are over every ten seconds."""
        kafka, topic = kafka_of_two_phases, "survives"
        async with prepared(kafka, topic) as (_, state):
            pass
        async with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            found = (await admin.describe_transactions([topic]))[topic]
            assert found is not None
            assert (found.state, found.timeout_ms) == ("Ongoing", 2**31 - 1)
            assert PreparedTxnState(found.producer_id, found.producer_epoch) == state
            await admin.end_transaction(topic, (state.producer_id, state.epoch), committed=True, second_protocol=True)
        await assert_committed(kafka, topic, 1, {0: [b"a"]})

    async def test_it_cannot_be_kept_and_is_still_open(self, kafka_of_two_phases: ApacheKafka) -> None:
        kafka, topic = kafka_of_two_phases, "not-kept"
        async with prepared(kafka, topic) as (older, state):
            async with two_phases(kafka, topic) as newer:
                with pytest.raises(UnsupportedVersionException, match=r"KafkaAdmin\.end_transaction"):
                    await newer.init_transactions(keep_prepared_txn=True)
            assert await older.complete_transaction(state)
        await assert_committed(kafka, topic, 1, {0: [b"a"]})

    async def test_the_next_producer_aborts_it(self, kafka_of_two_phases: ApacheKafka) -> None:
        kafka, topic = kafka_of_two_phases, "aborted-by-the-next"
        async with prepared(kafka, topic):
            pass
        async with two_phases(kafka, topic) as producer:
            await producer.init_transactions()
        await assert_committed(kafka, topic, 1, {0: []})


async def test_kafka_431_must_allow_it(kafka_431: ApacheKafka) -> None:
    """With its default configs it does not have the version."""
    async with two_phases(kafka_431, "too-stable") as producer:
        with pytest.raises(UnsupportedVersionException, match=r"unstable\.api\.versions\.enable=true"):
            await producer.init_transactions()


async def test_kafka_392_does_not_have_it(kafka_392: ApacheKafka) -> None:
    async with two_phases(kafka_392, "too-old") as producer:
        with pytest.raises(UnsupportedVersionException, match="InitProducerId 6"):
            await producer.init_transactions()


async def run(servers: str, database: Path, recovery: str, count: int, *crash_at: str) -> int:
    main = "from tests.conformance.two_phase_application import main; main()"
    arguments = [servers, str(database), recovery, str(count), *crash_at]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", f"import sys; sys.path.append({CHECKOUT!r}); {main}", *arguments, cwd=database.parent
    )
    try:
        async with asyncio.timeout(60):
            return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def check_crashes(servers: str, database: Path, recovery: str) -> None:
    """A database and Kafka have the same after a crash at every step, and confluent-kafka's consumer is the judge."""
    for step in STEPS:
        assert await run(servers, database, recovery, 2, step) == CRASHED, step
    for step in ("decided", "prepared"):
        assert await run(servers, database, recovery, 2, step) == CRASHED
        for _ in range(2):
            assert await run(servers, database, recovery, 1, RECOVERING) == CRASHED
    assert await run(servers, database, recovery, 3) == 0
    found = await asyncio.to_thread(read_committed, servers, TOPIC, PARTITIONS)
    rows = Database(str(database)).rows()
    assert len(rows) > 6
    for partition in range(PARTITIONS):
        expected = [f"{row} {part}".encode() for row in rows for part in range(partition, 100, PARTITIONS)]
        assert [value for _, value in found[partition]] == expected


async def test_a_database_decides_on_the_embedded_broker(tmp_path: Path) -> None:
    async with EmbeddedCluster(configs=ALLOWED, data_dir=tmp_path / "broker") as cluster:
        cluster.create_topic(TOPIC, PARTITIONS)
        await check_crashes(cluster.bootstrap_servers, tmp_path / "database", "keep")


async def test_a_database_decides_on_kafka_431(kafka_of_two_phases: ApacheKafka, tmp_path: Path) -> None:
    await create_topic(kafka_of_two_phases, TOPIC, partitions=PARTITIONS)
    await check_crashes(kafka_of_two_phases.bootstrap_servers, tmp_path / "database", "end")
