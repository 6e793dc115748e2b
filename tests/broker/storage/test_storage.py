"""A cluster with a data directory, as its clients see it."""

from __future__ import annotations

import asyncio
import errno
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from aioproducer import KafkaProducer, wait_all
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.log.producer_state import ProducerSnapshot, ProducerStateManager
from aioproducer.broker.security.scram_credentials import ScramMechanism
from aioproducer.broker.storage.files import OsFiles
from aioproducer.errors import DataDirectoryException, IllegalStateException, KafkaStorageException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from aioproducer.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.protocol.messages.metadata import MetadataRequest
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from aioproducer.testing.kafka.apache_kafka import KafkaTools
from aioproducer.timing.clock import SystemClock
from aioproducer.types import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient
from tests.support.polling import eventually


def values(cluster: EmbeddedCluster, topic: str = "t", partition: int = 0) -> list[bytes | None]:
    return [record.value for record in cluster.log(topic, partition).records()]


def produce(cluster: EmbeddedCluster, batch: bytes, acks: int = -1) -> ProduceRequest:
    data = TopicProduceData("t", cluster.topic("t").id, [PartitionProduceData(0, batch)])
    return ProduceRequest(acks=acks, topic_data=[data])


async def answer(client: RawClient, request: Any, version: int = 13) -> Any:
    (topic,) = (await client.request(request, version)).responses
    (partition,) = topic.partition_responses
    return partition


async def test_a_listeners_own_configs_are_kept_as_long_as_there_is_the_listener(tmp_path: Path) -> None:
    two = {
        "listeners": "PLAINTEXT://:0,INTERNAL://:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
    }
    own = "listener.name.internal.num.network.threads"
    async with EmbeddedCluster(data_dir=tmp_path, configs=two) as cluster:
        cluster.alter_broker_configs({own: 5})
    async with EmbeddedCluster(data_dir=tmp_path, configs=two) as cluster:
        acceptors = cluster._servers[0].sockets.acceptors
        assert {name: len(one.processors) for name, one in acceptors.items()} == {"PLAINTEXT": 3, "INTERNAL": 5}
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        assert len(cluster._servers[0].sockets.processors) == 3


async def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    configs = {"num.partitions": 3}
    async with EmbeddedCluster(2, data_dir=tmp_path, configs=configs) as cluster:
        cluster.create_topic("t", replication_factor=2, configs={"retention.ms": 5, "segment.bytes": 2000000})
        cluster.create_topic("gone")
        cluster.alter_broker_configs({"message.max.bytes": 5000}, node_id=1)
        cluster.alter_broker_configs({"min.insync.replicas": 1})
        cluster.alter_client_quotas({"user": None, "client-id": "slow"}, {"producer_byte_rate": 1024})
        cluster.move_leader("t", 0, 1)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            waiting = [producer.send("t", b"%d" % number, partition=number % 3) for number in range(100)]
            await wait_all([*waiting, producer.send("gone", b"x")])
        cluster.delete_topic("gone")
        before = cluster.topics, cluster.cluster_id, cluster.client_quotas()
        contents = [values(cluster, partition=index) for index in range(3)]
        epochs = [partition.leader_epoch for partition in cluster.topic("t").partitions]
    async with EmbeddedCluster(2, data_dir=tmp_path, configs=configs) as cluster:
        assert (cluster.cluster_id, cluster.client_quotas()) == before[1:]
        (topic,), (old,) = cluster.topics, before[0]
        assert (topic.name, topic.id, topic.configs, topic.config) == (old.name, old.id, old.configs, old.config)
        assert topic.config_on(1) == old.config_on(1) != topic.config
        assert [partition.replicas for partition in topic.partitions] == [one.replicas for one in old.partitions]
        assert all(one.leader_epoch > epoch for one, epoch in zip(topic.partitions, epochs, strict=True))
        assert [values(cluster, partition=index) for index in range(3)] == contents
        for index, partition in enumerate(topic.partitions):
            assert partition.log.active_producers() == old.partitions[index].log.active_producers() != []
        assert {name for name in OsFiles(tmp_path).names("") if name[-2] == "-"} == {"t-0", "t-1", "t-2"}


async def test_an_idempotent_producer_continues_after_a_restart(tmp_path: Path) -> None:
    """The same producer throughout: its retries and its next batches fit what the broker knows."""
    cluster = EmbeddedCluster(data_dir=tmp_path)
    await cluster.start()
    port = int(cluster.bootstrap_servers.rpartition(":")[2])
    async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, retry_backoff_ms=10) as producer:
        for number in range(3):
            await producer.send("t", b"%d" % number)
        await cluster.close()
        waiting = producer.send("t", b"3")
        cluster = EmbeddedCluster(data_dir=tmp_path, ports=[port])
        await cluster.start()
        await waiting
        assert values(cluster) == [b"0", b"1", b"2", b"3"]
    await cluster.close()


async def test_a_retry_is_known_after_a_restart(tmp_path: Path) -> None:
    batch = make_batch(b"a", producer_id=0, producer_epoch=0, base_sequence=0)
    offsets = []
    for _ in range(2):
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            if not cluster.topics:
                cluster.create_topic("t")
            client = await RawClient.connect(cluster.bootstrap_servers)
            offsets.append((await answer(client, produce(cluster, batch))).base_offset)
            assert cluster.log("t").log_end_offset == 1
            await client.close()
    assert offsets == [0, 0]


async def test_producer_ids_are_never_handed_out_twice(tmp_path: Path) -> None:
    found = []
    for _ in range(3):
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            client = await RawClient.connect(cluster.bootstrap_servers)
            for transactional_id in (None, "x"):
                response = await client.request(InitProducerIdRequest(transactional_id, 1000), 4)
                found.append((response.producer_id, response.producer_epoch))
            await client.close()
    assert found == [(0, 0), (1, 0), (2, 0), (1, 1), (3, 0), (1, 2)]


async def test_transactions_and_offsets(tmp_path: Path) -> None:
    partition = TopicPartition("in", 0)
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        cluster.create_topic("in")
        for name, committed in (("aborts", False), ("commits", True)):
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=name) as producer:
                await producer.init_transactions()
                await producer.begin_transaction()
                await producer.send("t", name.encode())
                offsets = {partition: OffsetAndMetadata(5 if committed else 7)}
                await producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata("g"))
                await (producer.commit_transaction() if committed else producer.abort_transaction())
        open_one = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="open")
        await open_one.start()
        await open_one.init_transactions()
        await open_one.begin_transaction()
        await open_one.send("t", b"open")
        before = cluster.log("t")
        stable = before.last_stable_offset
        port = int(cluster.bootstrap_servers.rpartition(":")[2])
    assert stable < before.log_end_offset
    async with EmbeddedCluster(data_dir=tmp_path, ports=[port]) as cluster:
        log = cluster.log("t")
        assert (log.last_stable_offset, log.log_end_offset) == (stable, before.log_end_offset)
        assert log.aborted_transactions(0, 99) == before.aborted_transactions(0, 99) != []
        assert cluster.committed_offsets("g") == {partition: 5}
        await open_one.commit_transaction()
        assert log.last_stable_offset == log.log_end_offset > before.log_end_offset
        await open_one.close()


async def test_an_open_transaction_has_the_rest_of_its_time(tmp_path: Path) -> None:
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, transactional_id="x", transaction_timeout_ms=500
        )
        await producer.start()
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("t", b"open")
    await producer.close(timeout=0)
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        await eventually(lambda: cluster.log("t").last_stable_offset > 0, every=0.001)
        assert cluster.log("t").aborted_transactions(0, 99)


class _ClockSetBack(SystemClock):
    @staticmethod
    def time_ms() -> int:
        return SystemClock.time_ms() - 86_400_000


async def test_an_open_transaction_does_not_get_more_time_when_the_clock_is_set_back(tmp_path: Path) -> None:
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, transactional_id="x", transaction_timeout_ms=500
        )
        await producer.start()
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("t", b"open")
    await producer.close(timeout=0)
    async with EmbeddedCluster(data_dir=tmp_path, clock=_ClockSetBack()) as cluster:
        await eventually(lambda: cluster.log("t").last_stable_offset > 0, every=0.001)
        assert cluster.log("t").aborted_transactions(0, 99)


async def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for number in range(5):
                await producer.send("t", b"%d" % number)
        client = await RawClient.connect(cluster.bootstrap_servers)
        wanted = [DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 3)])]
        await client.request(DeleteRecordsRequest(topics=wanted, timeout_ms=1000), 2)
        await client.close()
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        assert cluster.log("t").log_start_offset == 3
        assert values(cluster) == [b"3", b"4"]


async def test_an_unknown_user_of_scram_has_the_same_salt_after_a_restart(tmp_path: Path) -> None:
    salts = []
    for _ in range(2):
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            salts.append(cluster._state.scram_credentials.proving("nobody", ScramMechanism.SCRAM_SHA_256).salt)
    assert salts[0] == salts[1]


class TestDamage:
    """Files that were closed in good order, or left by a process that was killed, and have changed since."""

    @pytest.fixture
    async def damaged(self, tmp_path: Path) -> Path:
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t", 2)
            cluster.create_topic("other", configs={"retention.ms": 5})
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
                await wait_all([producer.send("t", b"%d" % number, partition=number % 2) for number in range(10)])
                await producer.send("other", b"x")
        (tmp_path / "clean.shutdown").unlink()
        return tmp_path

    def contents(self, directory: Path) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}

    async def refused(self, directory: Path) -> str:
        before = self.contents(directory)
        with pytest.raises(DataDirectoryException) as caught:
            await EmbeddedCluster(data_dir=directory).start()
        assert self.contents(directory) == before
        return str(caught.value)

    async def recovered(self, directory: Path) -> dict[str, list[list[bytes | None]]]:
        async with EmbeddedCluster(data_dir=directory, recover=True) as cluster:
            cluster.create_topic("new")
        async with EmbeddedCluster(data_dir=directory) as cluster:
            return {
                topic.name: [values(cluster, topic.name, one.index) for one in topic.partitions]
                for topic in cluster.topics
                if topic.name != "new"
            }

    EVERYTHING: ClassVar = {"t": [[b"0", b"2", b"4", b"6", b"8"], [b"1", b"3", b"5", b"7", b"9"]], "other": [[b"x"]]}

    def flip(self, path: Path, at: int) -> None:
        content = bytearray(path.read_bytes())
        content[at] ^= 0x40
        path.write_bytes(content)

    async def test_no_flipped_bit_in_the_journal_loses_records(self, damaged: Path, tmp_path: Path) -> None:
        journal = damaged / "metadata.journal"
        whole = journal.read_bytes()
        for at in range(0, len(whole), 23):
            self.flip(journal, at)
            assert "metadata.journal: bytes " in await self.refused(damaged)
            copy = tmp_path / "copy"
            shutil.copytree(damaged, copy, ignore=lambda directory, names: {"copy"} & {*names})
            assert await self.recovered(copy) == self.EVERYTHING
            assert (copy / "metadata.journal.0.damaged").read_bytes() == journal.read_bytes()
            shutil.rmtree(copy)
            journal.write_bytes(whole)

    async def test_without_its_journal_topics_are_found_by_their_directories(self, damaged: Path) -> None:
        (damaged / "metadata.journal").unlink()
        assert "metadata.journal is missing" in await self.refused(damaged)
        assert await self.recovered(damaged) == self.EVERYTHING

    @pytest.mark.parametrize("content", [b"", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n", b"?" * 50])
    async def test_a_directory_without_a_readable_topic_id(self, damaged: Path, content: bytes) -> None:
        (damaged / "t-1" / "partition.metadata").write_bytes(content)
        assert "t-1/partition.metadata does not name the topic 't'" in await self.refused(damaged)
        assert await self.recovered(damaged) == self.EVERYTHING

    async def test_a_directory_of_another_topic_is_none_of_this_one(self, damaged: Path) -> None:
        """The state that a crash leaves while the topic gets its first record: no recovery point exists."""
        (damaged / "recovery.points").unlink()
        (damaged / "t-1" / "partition.metadata").write_bytes(b"version: 0\ntopic_")
        async with EmbeddedCluster(data_dir=damaged) as cluster:
            assert values(cluster, "t", 1) == []
            assert values(cluster, "t", 0) == self.EVERYTHING["t"][0]
            async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
                await producer.send("t", b"new", partition=1)
        assert len(list((damaged / "t-1.0-stray").glob("*.log"))) == 1
        async with EmbeddedCluster(data_dir=damaged) as cluster:
            assert values(cluster, "t", 1) == [b"new"]

    async def test_one_wrong_byte_of_a_topic_id_is_corrected(
        self, damaged: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        metadata = damaged / "t-1" / "partition.metadata"
        whole = metadata.read_bytes()
        self.flip(metadata, 25)
        async with EmbeddedCluster(data_dir=damaged) as cluster:
            assert values(cluster, "t", 1) == self.EVERYTHING["t"][1]
        assert "t-1/partition.metadata was damaged and is restored from the journal" in caplog.text
        assert metadata.read_bytes() == whole
        assert len(list(metadata.parent.glob("partition.metadata.0.damaged"))) == 1

    async def test_a_directory_that_is_missing(self, damaged: Path) -> None:
        shutil.rmtree(damaged / "t-1")
        assert "t-1: records 0 to 4 cannot be read" in await self.refused(damaged)
        assert await self.recovered(damaged) == {**self.EVERYTHING, "t": [self.EVERYTHING["t"][0], []]}

    async def test_one_error_names_all_damage(self, damaged: Path) -> None:
        for name in ("t-0", "t-1", "other-0"):
            self.flip(damaged / name / f"{0:020}.log", 65)
        message = await self.refused(damaged)
        assert all(f"{name}: records " in message for name in ("t-0", "t-1", "other-0"))
        assert "--recover" in message

    async def test_a_change_after_a_clean_shutdown_fails_the_read(
        self, damaged: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with EmbeddedCluster(data_dir=damaged):
            pass
        self.flip(damaged / "t-0" / f"{0:020}.log", 65)
        async with EmbeddedCluster(data_dir=damaged) as cluster:
            client = await RawClient.connect(cluster.bootstrap_servers)
            request = FetchRequest(topics=[FetchTopic("t", partitions=[FetchPartition(0, fetch_offset=0)])])
            (topic,) = (await client.request(request, 12)).responses
            assert topic.partitions[0].error_code == ErrorCode.CORRUPT_MESSAGE
            await client.close()
        assert "t-0/00000000000000000000.log, byte 0: " in caplog.text

    @pytest.mark.parametrize("at", [3, 65], ids=["offset", "record"])
    async def test_the_log_start_is_known_though_the_first_batch_cannot_be_read(self, damaged: Path, at: int) -> None:
        async with EmbeddedCluster(data_dir=damaged):
            pass
        self.flip(damaged / "t-0" / f"{0:020}.log", at)
        async with EmbeddedCluster(data_dir=damaged) as cluster:
            client = await RawClient.connect(cluster.bootstrap_servers)
            earliest, earliest_local, by_time = -2, -4, 0
            found = {}
            for timestamp in (earliest, earliest_local, by_time):
                wanted = ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=timestamp)])
                (topic,) = (await client.request(ListOffsetsRequest(-1, topics=[wanted]), 9)).topics
                found[timestamp] = topic.partitions[0].error_code, topic.partitions[0].offset
            assert found == {
                earliest: (ErrorCode.NONE, 0),
                earliest_local: (ErrorCode.NONE, 0),
                by_time: (ErrorCode.CORRUPT_MESSAGE, -1),
            }
            await client.close()


@pytest.mark.parametrize("at_once", [False, True])
async def test_producers_are_stored_once_a_commit_and_go_with_their_topic(
    tmp_path: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    right = ProducerStateManager.snapshot

    def counted(self: ProducerStateManager) -> list[ProducerSnapshot]:
        taken.append(self)
        return right(self)

    monkeypatch.setattr(ProducerStateManager, "snapshot", counted)
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        assert cluster._storage is not None
        journal = cluster._storage._directory.journal
        cluster.create_topic("t", configs={"segment.bytes": 1024 * 1024})
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for _ in range(5):
                await producer.send("t", bytes(800_000))
        for before in range(1, 5):
            cluster.log("t").delete_records(before)
        if not at_once:
            await cluster._storage.commit()
            assert len(journal.of_kind("producers")) == len(taken) == 1
        cluster.delete_topic("t")
        await cluster._storage.commit()
        assert journal.of_kind("producers") == {}
        assert len(taken) == (0 if at_once else 1)


@pytest.mark.parametrize("interrupted", [False, True])
async def test_a_topic_is_deleted_whose_partition_is_behind_a_link(tmp_path: Path, interrupted: bool) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    async with EmbeddedCluster(data_dir=data) as cluster:
        cluster.create_topic("t")
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send("t", b"1")
    (data / "t-0").rename(elsewhere)
    (data / "t-0").symlink_to(elsewhere)
    async with EmbeddedCluster(data_dir=data) as cluster:
        assert values(cluster) == [b"1"]
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            await producer.send("t", b"2")
        cluster.delete_topic("t")
    assert [path.name for path in data.iterdir() if path.is_symlink()] == []
    if interrupted:  # the link has its new name, and is still there
        (data / "0123456789abcdef0123456789abcdef-0-delete").symlink_to(elsewhere)
    async with EmbeddedCluster(data_dir=data) as cluster:
        assert cluster.topics == []
    assert [path.name for path in data.iterdir() if path.is_symlink()] == []
    assert (elsewhere / f"{0:020}.log").stat().st_size > 0


class TestItCannotBeUsed:
    async def test_by_two_clusters_at_a_time(self, tmp_path: Path) -> None:
        async with EmbeddedCluster(data_dir=tmp_path):
            with pytest.raises(DataDirectoryException, match="is in use"):
                await EmbeddedCluster(data_dir=tmp_path).start()
        async with EmbeddedCluster(data_dir=tmp_path):
            pass

    async def test_by_a_cluster_with_another_number_of_nodes(self, tmp_path: Path) -> None:
        async with EmbeddedCluster(2, data_dir=tmp_path):
            pass
        with pytest.raises(DataDirectoryException, match="of a cluster of 2 nodes, not 1"):
            await EmbeddedCluster(data_dir=tmp_path).start()
        async with EmbeddedCluster(2, data_dir=tmp_path):
            pass

    async def test_if_it_is_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.doc").write_text("")
        with pytest.raises(DataDirectoryException, match=r"'thesis.doc'.*choose an empty directory"):
            await EmbeddedCluster(data_dir=tmp_path).start()

    async def test_if_its_journal_cannot_be_read(self, tmp_path: Path) -> None:
        async with EmbeddedCluster(data_dir=tmp_path):
            pass
        (tmp_path / "metadata.journal").write_bytes(b"\0" * 100)
        with pytest.raises(DataDirectoryException, match=r"metadata\.journal: bytes 0 to 99 cannot be read"):
            await EmbeddedCluster(data_dir=tmp_path).start()
        assert (tmp_path / "metadata.journal").read_bytes() == b"\0" * 100

    async def test_twice_by_the_same_cluster(self, tmp_path: Path) -> None:
        cluster = EmbeddedCluster(data_dir=tmp_path)
        async with cluster:
            pass
        with pytest.raises(IllegalStateException, match="started only once"):
            await cluster.start()

    async def test_if_a_node_cannot_start_another_may(self, tmp_path: Path) -> None:
        async with EmbeddedCluster() as other:
            port = int(other.bootstrap_servers.rpartition(":")[2])
            with pytest.raises(OSError):
                await EmbeddedCluster(ports=[port], data_dir=tmp_path).start()
        async with EmbeddedCluster(data_dir=tmp_path):
            pass


async def test_a_directory_that_fails_when_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(files: OsFiles, path: str, parts: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(OsFiles, "append", full)
    with pytest.raises(DataDirectoryException, match="cannot be used: No space left on device"):
        await EmbeddedCluster(data_dir=tmp_path).start()


async def test_a_partition_that_fails_to_open_is_named(tmp_path: Path) -> None:
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        cluster.create_topic("t")
        client = await RawClient.connect(cluster.bootstrap_servers)
        await answer(client, produce(cluster, make_batch(b"a")))
        await client.close()
    shutil.rmtree(tmp_path / "t-0")
    (tmp_path / "t-0").symlink_to("t-0")
    with pytest.raises(DataDirectoryException, match=r"cannot be used: .*symbolic links.* \(.*t-0"):
        await EmbeddedCluster(data_dir=tmp_path).start()


class TestAnotherProgramChangesFiles:
    """While the broker runs: nothing more is acknowledged, because it would not be where a start looks for it."""

    @pytest.mark.parametrize("how", ["removed", "cut", "grown"])
    async def test_of_a_log(self, tmp_path: Path, how: str) -> None:
        path = tmp_path / "t-0" / f"{0:020}.log"
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t")
            client = await RawClient.connect(cluster.bootstrap_servers)
            for value in (b"a", b"b"):
                assert (await answer(client, produce(cluster, make_batch(value)))).error_code == ErrorCode.NONE
            if how == "removed":
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[:100] if how == "cut" else path.read_bytes() + b"x")
            failed = await answer(client, produce(cluster, make_batch(b"c")))
            assert failed.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert f"another program has changed t-0/{path.name}: it has " in await cluster.failed()
            await client.close()
        if how != "grown":
            with pytest.raises(DataDirectoryException, match=r"records [01] to [12] cannot be read"):
                await EmbeddedCluster(data_dir=tmp_path).start()

    @pytest.mark.parametrize("how", ["removed", "cut", "grown"])
    async def test_of_the_journal(self, tmp_path: Path, how: str) -> None:
        path = tmp_path / "metadata.journal"
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t")
            client = await RawClient.connect(cluster.bootstrap_servers)
            assert (await answer(client, produce(cluster, make_batch(b"a")))).error_code == ErrorCode.NONE
            if how == "removed":
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[:100] if how == "cut" else path.read_bytes() + b"x")
            cluster.create_topic("u")
            assert "another program has changed metadata.journal: it has " in await cluster.failed()
            await client.close()
        if how != "grown":
            with pytest.raises(DataDirectoryException, match=r"journal.* (is missing|cannot be read)\. Nothing was"):
                await EmbeddedCluster(data_dir=tmp_path).start()
        async with EmbeddedCluster(data_dir=tmp_path, recover=True) as cluster:
            assert values(cluster) == [b"a"]


async def test_in_memory_nothing_fails() -> None:
    async with EmbeddedCluster() as cluster:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await cluster.failed()


class SlowFiles(OsFiles):
    """Each sync waits until it may; ``error`` is what it then raises."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.syncs = 0
        self.error: OSError | None = None

    def sync(self, path: str) -> None:
        self.may_sync.wait(10)
        self.syncs += 1
        if self.error is not None:
            raise self.error
        super().sync(path)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlowFiles:
    files = SlowFiles(tmp_path)
    monkeypatch.setattr("aioproducer.broker.cluster.OsFiles", lambda path: files)
    return files


class TestAlways:
    @pytest.mark.parametrize("acks", [1, -1])
    async def test_nothing_is_acknowledged_before_it_is_synced(
        self, files: SlowFiles, tmp_path: Path, acks: int
    ) -> None:
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t")
            client = await RawClient.connect(cluster.bootstrap_servers)
            consumer = await RawClient.connect(cluster.bootstrap_servers)
            wanted = FetchRequest(
                max_wait_ms=10_000,
                min_bytes=1,
                topics=[FetchTopic("t", cluster.topic("t").id, [FetchPartition(0, partition_max_bytes=1000)])],
            )
            await consumer.request(MetadataRequest(), 1)
            files.may_sync.clear()
            acknowledged = asyncio.create_task(answer(client, produce(cluster, make_batch(b"a"), acks)))
            fetched = asyncio.create_task(consumer.request(wanted, 13))
            await eventually(lambda: cluster.log("t").log_end_offset > 0, every=0.001)
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert not acknowledged.done()
            assert not fetched.done()
            files.may_sync.set()
            assert (await acknowledged).base_offset == 0
            assert (await fetched).responses[0].partitions[0].high_watermark == 1
            await client.close()
            await consumer.close()

    async def test_one_sync_is_for_all_that_wait(self, files: SlowFiles, tmp_path: Path) -> None:
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t")
            clients = [await RawClient.connect(cluster.bootstrap_servers) for _ in range(20)]
            await asyncio.gather(*(client.request(MetadataRequest(), 1) for client in clients))
            files.may_sync.clear()
            waiting = [asyncio.create_task(answer(one, produce(cluster, make_batch(b"a")))) for one in clients]
            await eventually(lambda: cluster.log("t").log_end_offset == 20, every=0.001)
            before = files.syncs
            files.may_sync.set()
            assert sorted(one.base_offset for one in await asyncio.gather(*waiting)) == list(range(20))
            # Of the commit under way, which may have begun with any of them, and of one for all others.
            assert files.syncs - before <= 4
            for client in clients:
                await client.close()

    async def test_a_client_that_disconnects_meanwhile_harms_no_other(self, files: SlowFiles, tmp_path: Path) -> None:
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t")
            client = await RawClient.connect(cluster.bootstrap_servers)
            await client.request(MetadataRequest(), 1)
            files.may_sync.clear()
            await client.send(produce(cluster, make_batch(b"a")), 13)
            await eventually(lambda: cluster.log("t").log_end_offset > 0, every=0.001)
            await client.close()
            files.may_sync.set()
        assert values(cluster) == [b"a"]

    async def test_a_clean_stop_answers_what_waits_for_the_disk(self, files: SlowFiles, tmp_path: Path) -> None:
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t")
            client = await RawClient.connect(cluster.bootstrap_servers)
            await client.request(MetadataRequest(), 1)
            files.may_sync.clear()
            acknowledged = asyncio.create_task(answer(client, produce(cluster, make_batch(b"a"))))
            await eventually(lambda: cluster.log("t").log_end_offset > 0, every=0.001)
            asyncio.get_running_loop().call_later(0.02, files.may_sync.set)
        assert (await acknowledged).error_code == ErrorCode.NONE
        await client.close()

    async def test_a_sync_that_fails_once_is_never_tried_again(
        self, files: SlowFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The kernel takes the pages for written after that: a second sync would succeed, and prove nothing."""
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t")
            client = await RawClient.connect(cluster.bootstrap_servers)
            other = await RawClient.connect(cluster.bootstrap_servers)
            assert (await answer(client, produce(cluster, make_batch(b"a")))).error_code == ErrorCode.NONE
            files.error = OSError(errno.EIO, "Input/output error")
            with caplog.at_level(logging.ERROR):
                refused = await answer(client, produce(cluster, make_batch(b"b")))
            assert (refused.error_code, refused.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            assert "no change is acknowledged until it is opened anew: [Errno 5]" in caplog.text
            async with asyncio.timeout(10):
                why = await cluster.failed()
            assert why == f"the data directory {tmp_path} has failed: [Errno 5] Input/output error"
            files.error = None
            again = await answer(client, produce(cluster, make_batch(b"b")))
            assert again.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            await other.send(MetadataRequest(), 1)
            assert await other.is_closed()
            with pytest.raises(KafkaStorageException):
                cluster.create_topic("u")
            await client.close()
            await other.close()
        async with EmbeddedCluster(data_dir=tmp_path) as cluster:
            assert values(cluster)[0] == b"a"


@pytest.mark.parametrize("policy", ["interval", "never"])
async def test_other_policies_do_not_wait_for_a_sync(files: SlowFiles, tmp_path: Path, policy: str) -> None:
    configs = {"log.flush.policy": policy, "log.flush.interval.ms": 20}
    async with EmbeddedCluster(data_dir=tmp_path, configs=configs) as cluster:
        cluster.create_topic("t")
        client = await RawClient.connect(cluster.bootstrap_servers)
        await client.request(MetadataRequest(), 1)
        before = files.syncs
        files.may_sync.clear()
        assert (await answer(client, produce(cluster, make_batch(b"a")))).base_offset == 0
        assert (tmp_path / "t-0" / f"{0:020}.log").stat().st_size > 0  # what kill -9 cannot take back
        files.may_sync.set()
        await eventually(lambda: policy == "never" or files.syncs > before, every=0.001)
        assert (files.syncs > before) == (policy == "interval")
        await client.close()
    assert files.syncs > before  # a close syncs


@pytest.mark.conformance
async def test_kafkas_own_tool_reads_the_files(
    tmp_path: Path, java_tools: Callable[[EmbeddedCluster], KafkaTools]
) -> None:
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        async with KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, transactional_id="x", compression_type="gzip"
        ) as producer:
            await producer.init_transactions()
            for committed in (True, False):
                await producer.begin_transaction()
                await wait_all([producer.send("t", b"%d" % number) for number in range(100)])
                await (producer.commit_transaction() if committed else producer.abort_transaction())
        expected = [
            (one.base_offset, one.last_offset, one.count, one.producer_id, one.producer_epoch, one.base_sequence)
            for one in cluster.log("t").batches()
        ]
        tools = java_tools(cluster)
    found = await tools.dump_log(tmp_path / "t-0")
    assert [
        (one.base_offset, one.last_offset, one.count, one.producer_id, one.producer_epoch, one.base_sequence)
        for one in found
    ] == expected
    assert [one.is_control for one in found].count(True) == 2
    assert all(one.is_transactional for one in found)


def produce_until_killed(directory: Path, count: int) -> int:
    """A broker and its producer in a process of their own; the last record that was acknowledged."""
    code = f"""
import asyncio
from aioproducer import KafkaProducer, wait_all
from aioproducer.broker import EmbeddedCluster

async def main():
    async with EmbeddedCluster(data_dir={str(directory)!r}) as cluster:
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            for number in range(10**9):
                await producer.send("t", b"%d" % number)
                print(number, flush=True)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = -1
        for line in process.stdout:
            acknowledged = int(line)
            if acknowledged == count:
                process.kill()
    return acknowledged


async def test_a_killed_process_loses_nothing_acknowledged(tmp_path: Path) -> None:
    acknowledged = await asyncio.to_thread(produce_until_killed, tmp_path, 50)
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        found = values(cluster)
    assert len(found) > acknowledged >= 50
    assert found == [b"%d" % number for number in range(len(found))]


async def test_users_are_kept_and_no_password(tmp_path: Path) -> None:
    def users(cluster: EmbeddedCluster) -> dict[str, list[Any]]:
        known = cluster._state.scram_credentials
        return {user: list(known.of_user(user)) for user in known.users()}

    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        cluster.alter_user_scram_credentials("alice", "planted")
        cluster.alter_user_scram_credentials("alice", "planted", mechanism="SCRAM-SHA-512")
        cluster.alter_user_scram_credentials("gone", "planted")
        cluster.alter_user_scram_credentials("gone", None)
        before = users(cluster)
    assert b"planted" not in (tmp_path / "metadata.journal").read_bytes()
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        assert users(cluster) == before
        assert [mechanism.mechanism for mechanism, _ in before["alice"]] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
        assert list(before) == ["alice"]


async def test_it_is_opened_and_closed_though_the_loops_own_threads_are_busy(tmp_path: Path) -> None:
    executor = ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(executor)
    over = threading.Event()
    executor.submit(over.wait)
    try:
        async with asyncio.timeout(30), EmbeddedCluster(data_dir=tmp_path) as cluster:
            cluster.create_topic("t")
    finally:
        over.set()
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        assert [topic.name for topic in cluster.topics] == ["t"]
