"""Clients that know nothing of this project produce to the embedded broker and read back what they wrote."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aioproducer import KafkaProducer, wait_all
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch_header import encode_batch_header
from aioproducer.testing.kafka.apache_kafka import KafkaTools
from tests.broker.raw_clients.batches import NOW_MS, make_batch
from tests.broker.raw_clients.raw_client import Connect

CODECS = [str(codec) for codec in CompressionType]
COUNT = 500

Pairs = list[tuple[bytes | None, bytes | None]]

RECORDS: Pairs = [(b"key %d" % index, b"value %d " % index * 10) for index in range(COUNT)]


def stored(cluster: EmbeddedCluster, topic: str) -> Pairs:
    """What is in the log, partition by partition."""
    return [
        (record.key, record.value)
        for partition in cluster.topic(topic).partitions
        for record in partition.log.records()
    ]


def check(cluster: EmbeddedCluster, topic: str, codec: str) -> None:
    """Every record once, with the configured compression (a client may skip it where it makes a batch larger)."""
    assert sorted(stored(cluster, topic)) == sorted(RECORDS)
    for partition in cluster.topic(topic).partitions:
        used = {batch.codec for batch in partition.log.batches() if batch.count > 5}
        assert used <= {CompressionType.of(codec)}


@pytest.mark.parametrize("cluster", [{"nodes": 2, "configs": {"num.partitions": 3}}], indirect=True)
class TestAiokafka:
    @pytest.fixture(autouse=True)
    def aiokafka(self) -> Any:
        return pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    @pytest.mark.parametrize("idempotent", [True, False])
    @pytest.mark.parametrize("codec", CODECS)
    async def test_produce_and_consume(
        self, cluster: EmbeddedCluster, aiokafka: Any, codec: str, idempotent: bool
    ) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers,
            enable_idempotence=idempotent,
            compression_type=None if codec == "none" else codec,
            linger_ms=5,
        )
        async with producer:
            deliveries = [await producer.send("t", value, key=key) for key, value in RECORDS]
            offsets = {(metadata.partition, metadata.offset) for metadata in await asyncio.gather(*deliveries)}
        assert len(offsets) == COUNT
        check(cluster, "t", codec)

        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap_servers, group_id=None, auto_offset_reset="earliest"
        )
        async with consumer:
            consumer.assign([aiokafka.TopicPartition("t", partition) for partition in range(3)])
            records = [await consumer.getone() for _ in range(COUNT)]
        assert sorted((record.key, record.value) for record in records) == sorted(RECORDS)
        assert {(record.partition, record.offset) for record in records} == offsets

    async def test_transactions(self, cluster: EmbeddedCluster, aiokafka: Any) -> None:
        cluster.create_topic("t", partitions=1)
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="x")
        async with producer:
            for number in range(6):
                await producer.begin_transaction()
                await producer.send_and_wait("t", b"%d" % number)
                await (producer.commit_transaction() if number % 3 else producer.abort_transaction())
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=cluster.bootstrap_servers,
            group_id=None,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        async with consumer:
            consumer.assign([aiokafka.TopicPartition("t", 0)])
            assert [(await consumer.getone()).value for _ in range(4)] == [b"1", b"2", b"4", b"5"]


class TestConfluent:
    @pytest.fixture(autouse=True)
    def confluent(self) -> Any:
        return pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

    async def test_lists_topics(self, cluster: EmbeddedCluster, confluent: Any) -> None:
        """librdkafka sends bytes after the end of this request, and Kafka passes them over."""
        cluster.create_topic("listed", partitions=2)
        producer = confluent.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        found = await asyncio.to_thread(producer.list_topics, timeout=10)
        assert len(found.topics["listed"].partitions) == 2

    @pytest.mark.parametrize("idempotent", [True, False])
    @pytest.mark.parametrize("codec", CODECS)
    async def test_produce_and_consume(
        self, cluster: EmbeddedCluster, confluent: Any, codec: str, idempotent: bool
    ) -> None:
        await asyncio.to_thread(self.produce, confluent, cluster.bootstrap_servers, codec, idempotent)
        check(cluster, "t", codec)
        assert stored(cluster, "t") == RECORDS
        if codec != "none":
            assert {batch.codec for batch in cluster.log("t").batches()} == {CompressionType.of(codec)}
        assert await asyncio.to_thread(self.consume, confluent, cluster.bootstrap_servers) == RECORDS

    @pytest.mark.parametrize(
        "cluster", [{"nodes": 3}, {"nodes": 3, "transaction_version": 1}], indirect=True, ids=["v2", "v1"]
    )
    async def test_transactions(self, cluster: EmbeddedCluster, confluent: Any) -> None:
        cluster.create_topic("t", partitions=3, replication_factor=3)
        await asyncio.to_thread(self.produce_transactions, confluent, cluster.bootstrap_servers)
        read = await asyncio.to_thread(self.read_committed, confluent, cluster.bootstrap_servers, 40)
        assert sorted(read) == sorted(b"%d %d" % (number, i) for number in (1, 2, 4, 5) for i in range(10))

    def produce_transactions(self, confluent: Any, servers: str) -> None:
        """Six, of ten records over three partitions; every third is aborted. The first producer is fenced."""
        older = confluent.Producer({"bootstrap.servers": servers, "transactional.id": "x"})
        older.init_transactions(10)
        older.begin_transaction()
        older.produce("t", b"of the older")
        older.flush(10)
        producer = confluent.Producer({"bootstrap.servers": servers, "transactional.id": "x"})
        producer.init_transactions(10)
        for number in range(6):
            producer.begin_transaction()
            for i in range(10):
                producer.produce("t", b"%d %d" % (number, i), partition=i % 3)
            if number % 3:
                producer.commit_transaction(10)
            else:
                producer.abort_transaction(10)
        with pytest.raises(confluent.KafkaException) as failed:
            older.commit_transaction(10)
        assert failed.value.args[0].code() == confluent.KafkaError._FENCED

    def read_committed(self, confluent: Any, servers: str, count: int) -> list[bytes]:
        consumer = confluent.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "none",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        try:
            consumer.assign([confluent.TopicPartition("t", partition, 0) for partition in range(3)])
            messages: list[bytes] = []
            while len(messages) < count:
                message = consumer.poll(10)
                assert message is not None
                assert message.error() is None
                messages.append(message.value())
            assert consumer.poll(0.3) is None
            return messages
        finally:
            consumer.close()

    @pytest.mark.parametrize("cluster", [{"nodes": 3}], indirect=True)
    async def test_each_record_once_while_leaders_move_and_nodes_stop(
        self, cluster: EmbeddedCluster, confluent: Any
    ) -> None:
        cluster.create_topic("t", replication_factor=3)
        log = cluster.log("t")
        small = {"batch.num.messages": 10, "linger.ms": 0, "retry.backoff.ms": 10}
        producing = asyncio.create_task(
            asyncio.to_thread(self.produce, confluent, cluster.bootstrap_servers, "none", True, **small)
        )
        for step in range(8):
            seen = log.log_end_offset
            while log.log_end_offset == seen and not producing.done():  # noqa: ASYNC110 - the log has no event for this
                await asyncio.sleep(0)
            leader = cluster.leader("t")
            if step % 4 == 3:
                await cluster.stop_node(leader)
                await cluster.start_node(leader)
            else:
                cluster.move_leader("t", 0, (leader + 1) % 3)
        await producing
        assert len({batch.partition_leader_epoch for batch in log.batches()}) > 3
        assert stored(cluster, "t") == RECORDS

    def produce(self, confluent: Any, servers: str, codec: str, idempotent: bool, **more: int) -> None:
        config = {"bootstrap.servers": servers, "compression.type": codec, "enable.idempotence": idempotent}
        producer = confluent.Producer({**config, "linger.ms": 5, **more})
        failures = []

        def delivered(error: object, message: object) -> None:
            if error is not None:
                failures.append(error)

        for key, value in RECORDS:
            producer.produce("t", value, key, on_delivery=delivered)
        assert producer.flush(30) == 0
        assert failures == []

    def consume(self, confluent: Any, servers: str) -> Pairs:
        consumer = confluent.Consumer({"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False})
        consumer.assign([confluent.TopicPartition("t", 0, 0)])
        messages = consumer.consume(COUNT, 30)
        consumer.close()
        return [(message.key(), message.value()) for message in messages]


class TestKafkaPython:
    @pytest.fixture(autouse=True)
    def kafka_python(self) -> Any:
        return pytest.importorskip("kafka", reason="kafka-python is not installed")

    @pytest.mark.parametrize("codec", CODECS)
    async def test_produce(self, cluster: EmbeddedCluster, kafka_python: Any, codec: str) -> None:
        if codec != "none" and not getattr(kafka_python.codec, f"has_{codec}")():
            pytest.skip(f"kafka-python has no library for {codec}")
        await asyncio.to_thread(self.produce, kafka_python, cluster.bootstrap_servers, codec)
        check(cluster, "t", codec)

    def produce(self, kafka_python: Any, servers: str, codec: str) -> None:
        compression = None if codec == "none" else codec
        producer = kafka_python.KafkaProducer(bootstrap_servers=servers, compression_type=compression, linger_ms=5)
        deliveries = [producer.send("t", value, key) for key, value in RECORDS]
        producer.flush(30)
        assert [delivery.get(0).offset for delivery in deliveries] == list(range(COUNT))
        producer.close()


@pytest.mark.conformance
@pytest.mark.timeout(300)
@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
class TestKafkaTools:
    @pytest.fixture
    def tools(self, cluster: EmbeddedCluster, java_tools: Callable[[EmbeddedCluster], KafkaTools]) -> KafkaTools:
        return java_tools(cluster)

    async def test_console_producer_and_consumer(self, cluster: EmbeddedCluster, tools: KafkaTools) -> None:
        records = [(None if index % 7 == 0 else f"key {index}", f"value {index}") for index in range(COUNT)]
        await tools.console_producer("t", records, configs={"compression.type": "zstd"})
        expected = [(key and key.encode(), value.encode()) for key, value in records]
        assert stored(cluster, "t") == expected
        assert all(batch.producer_id >= 0 and batch.base_sequence >= 0 for batch in cluster.log("t").batches())
        consumed = await tools.console_consumer("t", partition=0, max_messages=COUNT)
        assert [(record.key, record.value) for record in consumed] == expected
        assert [record.offset for record in consumed] == list(range(COUNT))

    async def test_topics(self, cluster: EmbeddedCluster, tools: KafkaTools) -> None:
        await tools.create_topic("made", partitions=3, replication_factor=2, configs={"retention.ms": "1000"})
        assert [partition.replicas for partition in cluster.topic("made").partitions] == [(0, 1), (1, 0), (0, 1)]
        assert cluster.topic("made").configs == {"retention.ms": "1000"}
        assert await tools.list_topics() == ["made"]
        assert await tools.get_offsets("made") == {0: 0, 1: 0, 2: 0}
        await tools.delete_topic("made")
        assert await tools.list_topics() == []

    @pytest.mark.parametrize("acks", ["all", "1", "0"])
    async def test_producer_performance(self, cluster: EmbeddedCluster, tools: KafkaTools, acks: str) -> None:
        cluster.create_topic("t", partitions=4)
        configs = {"acks": acks, "enable.idempotence": str(acks == "all").lower(), "compression.type": "lz4"}
        result = await tools.producer_performance("t", num_records=20_000, record_size=100, configs=configs)
        assert result.records == 20_000
        # With acks=0 the tool has ended when the last records may still be on their way.
        async with asyncio.timeout(30):
            partitions = cluster.topic("t").partitions
            while sum(partition.log.log_end_offset for partition in partitions) < 20_000:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0)
        assert len(stored(cluster, "t")) == 20_000


@pytest.mark.conformance
@pytest.mark.timeout(300)
async def test_a_batch_with_garbage_inside_stops_no_consumer(
    cluster: EmbeddedCluster, java_tools: Callable[[EmbeddedCluster], KafkaTools], connect: Connect
) -> None:
    cluster.create_topic("t")
    client, body = await connect(), b"\x0c" + b"\xff" * 6
    garbage = encode_batch_header(body, count=1, base_timestamp=NOW_MS, max_timestamp=NOW_MS) + body
    codes = []
    for batch in (make_batch(b"first"), garbage, make_batch(b"second")):
        data = TopicProduceData("", cluster.topic("t").id, [PartitionProduceData(0, batch)])
        response = await client.request(ProduceRequest(acks=-1, topic_data=[data]), 13)
        codes += [one.error_code for one in response.responses[0].partition_responses]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_RECORD, ErrorCode.NONE]
    # On a loaded machine it takes half a minute to start.
    consumed = await java_tools(cluster).console_consumer("t", max_messages=2, timeout=120)
    assert [record.value for record in consumed] == [b"first", b"second"]


@pytest.mark.conformance
@pytest.mark.timeout(300)
@pytest.mark.parametrize("cluster", [{}, {"transaction_version": 1}], indirect=True, ids=["v2", "v1"])
async def test_transactions_of_kafkas_producer(
    cluster: EmbeddedCluster, java_tools: Callable[[EmbeddedCluster], KafkaTools]
) -> None:
    tools = java_tools(cluster)
    cluster.create_topic("t", partitions=4)
    result = await tools.producer_performance(
        "t", num_records=5_000, record_size=100, transactional_id="x", configs={"batch.size": "1000"}
    )
    assert result.records == 5_000
    assert len(stored(cluster, "t")) == 5_000
    logs = [partition.log for partition in cluster.topic("t").partitions]
    assert all(log.last_stable_offset == log.log_end_offset for log in logs), "every transaction has ended"
    assert any(batch.is_control for log in logs for batch in log.batches())


class TestTruncation:
    """A consumer that has read more than the broker has kept, and what has come in its place since then."""

    @pytest.fixture(autouse=True)
    def confluent(self) -> Any:
        return pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

    def read(self, consumer: Any, count: int) -> list[Any]:
        found: list[Any] = []
        until = time.monotonic() + 20
        while len(found) < count and time.monotonic() < until:
            message = consumer.poll(0.1)
            if message is not None:
                found.append(message.error() or message.value())
        return found

    @pytest.mark.parametrize("recover", [False, True])
    async def test_it_is_noticed(self, confluent: Any, tmp_path: Path, recover: bool) -> None:
        """Without ``recover`` the end of the log was never synced, and is cut off; with it the records are lost, and
        their offsets are not used again."""
        before, after = tmp_path / "before", tmp_path / "after"
        policy = {"log.flush.policy": "never"}
        async with EmbeddedCluster(data_dir=before, configs=policy) as cluster:
            port = int(cluster.bootstrap_servers.rpartition(":")[2])
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, batch_size=1) as producer:
                await wait_all([producer.send("t", b"old %d" % number) for number in range(20)])
            consumer = confluent.Consumer(
                {
                    "bootstrap.servers": cluster.bootstrap_servers,
                    "group.id": "g",
                    "auto.offset.reset": "error",
                    "reconnect.backoff.ms": 20,
                    "reconnect.backoff.max.ms": 100,
                    "topic.metadata.refresh.interval.ms": 200,
                    "log_level": 0,
                }
            )
            consumer.assign([confluent.TopicPartition("t", 0, 0)])
            assert await asyncio.to_thread(self.read, consumer, 20) == [b"old %d" % number for number in range(20)]
            if not recover:
                shutil.copytree(before, after)
        if recover:
            shutil.copytree(before, after)
            (after / "clean.shutdown").unlink()
        (segment,) = after.glob("t-0/*.log")
        segment.write_bytes(segment.read_bytes()[: segment.stat().st_size // 2])
        async with EmbeddedCluster(data_dir=after, ports=[port], configs=policy, recover=recover) as cluster:
            assert cluster.log("t").log_end_offset == (20 if recover else 10)
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
                await wait_all([producer.send("t", b"new %d" % number) for number in range(30)])
            found = await asyncio.to_thread(self.read, consumer, 30 if recover else 1)
            await asyncio.to_thread(consumer.close)
        if recover:
            assert found == [b"new %d" % number for number in range(30)]
        else:
            assert found[0].code() == confluent.KafkaError._AUTO_OFFSET_RESET
            assert "truncat" in found[0].str()
