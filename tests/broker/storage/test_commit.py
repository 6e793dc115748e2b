"""A commit is bounded: it takes little time on any disk, and little of the event loop however many logs change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.coordinators.transaction_coordinator import NOBODY, TransactionCoordinator
from aioproducer.broker.storage.commit import Commit, CommitPace
from aioproducer.broker.storage.data_directory import DataDirectory
from aioproducer.broker.storage.files import OsFiles
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.raw_clients.batches import make_batch
from tests.broker.raw_clients.raw_client import RawClient

PARTITIONS = 200


class TestPace:
    @pytest.mark.parametrize("seconds_per_log", [0, 0.000_02, 0.000_3, 0.001, 0.05])
    def test_it_finds_how_many_logs_take_the_wanted_time(self, seconds_per_log: float) -> None:
        pace = CommitPace()
        found = []
        for _ in range(200):
            found.append(pace.logs)
            pace.committed(pace.logs, pace.logs * seconds_per_log)
        fitting = pace.TARGET / seconds_per_log if seconds_per_log else pace.MOST
        for logs in found[100:]:
            assert logs <= max(pace.LEAST, min(pace.MOST, 1.3 * fitting + 1))
            assert logs >= max(pace.LEAST, min(pace.MOST, fitting // 2))

    def test_small_commits_say_nothing_of_large_ones(self) -> None:
        pace = CommitPace()
        for _ in range(100):
            pace.committed(1, 0.001)
        assert pace.logs == CommitPace().logs


class _Counts:
    """How many logs each commit has written to, and how many markers each turn of the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pace: int) -> None:
        self.logs: list[int] = []
        self.markers: list[int] = []
        run, write = Commit.run, TransactionCoordinator._write_markers

        def counted_run(commit: Commit) -> None:
            self.logs.append(len(commit.logs))
            run(commit)

        def counted_write(coordinator: Any, partitions: Sequence[Any], *args: Any, **options: Any) -> None:
            self.markers.append(len(partitions))
            write(coordinator, partitions, *args, **options)

        monkeypatch.setattr(Commit, "run", counted_run)
        monkeypatch.setattr(TransactionCoordinator, "_write_markers", counted_write)
        monkeypatch.setattr(CommitPace, "MOST", pace)
        monkeypatch.setattr(CommitPace, "LEAST", pace)
        monkeypatch.setattr(TransactionCoordinator, "markers_at_once", 60)
        monkeypatch.setattr(OsFiles, "_sync", lambda *_: None)  # a loaded disk takes long for so many files


async def _committed(cluster: EmbeddedCluster) -> None:
    """Returns when a transaction in all partitions is committed."""
    transactions = cluster._transactions
    identity = transactions.init_producer_id("x", 60_000, NOBODY)[0]
    transactions.add_partitions("x", identity, [("wide", index) for index in range(PARTITIONS)])
    transactions.end("x", identity, committed=True, bump=False)
    metadata = transactions.transaction("x")
    assert metadata is not None
    while metadata.is_prepared:  # noqa: ASYNC110 - there is no event to await
        await asyncio.sleep(0)
    assert {cluster.log("wide", index).log_end_offset for index in range(PARTITIONS)} == {1}


@pytest.mark.parametrize("in_a_directory", [False, True])
async def test_the_end_of_a_wide_transaction_is_little_work_in_a_turn_and_in_a_commit(
    in_a_directory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = _Counts(monkeypatch, pace=20)
    directory = tmp_path / "data" if in_a_directory else None
    async with EmbeddedCluster(data_dir=directory, configs={"log.flush.policy": "never"}) as cluster:
        cluster.create_topic("wide", partitions=PARTITIONS)
        await _committed(cluster)
    few = TransactionCoordinator.few_markers
    if in_a_directory:
        assert (counts.markers[0], max(counts.markers[1:])) == (few, 20)
        assert max(counts.logs) == few
    else:
        assert (max(counts.markers), counts.logs) == (60, [])
    assert sum(counts.markers) == PARTITIONS


async def _produced(cluster: EmbeddedCluster, partitions: int) -> set[int]:
    """Sends one record to each partition, in one request; the error codes of the answers."""
    cluster.create_topic("wide", partitions=partitions)
    data = [PartitionProduceData(index, make_batch(b"x")) for index in range(partitions)]
    client = await RawClient.connect(cluster.bootstrap_servers)
    topic = TopicProduceData("", cluster.topic("wide").id, data)
    response = await client.request(ProduceRequest(acks=-1, topic_data=[topic]), 13)
    await client.close()
    return {one.error_code for one in response.responses[0].partition_responses}


async def test_a_wide_produce_waits_for_the_commits_of_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = _Counts(monkeypatch, pace=20)
    async with EmbeddedCluster(data_dir=tmp_path / "data", configs={"log.flush.policy": "never"}) as cluster:
        assert await _produced(cluster, PARTITIONS) == {ErrorCode.NONE}
    assert max(counts.logs) < 20 + 32  # the last step of a slice has 32 partitions


async def test_logs_that_a_commit_leaves_are_written_before_they_are_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are more of them than work that waits for room has made."""
    counts = _Counts(monkeypatch, pace=500)
    monkeypatch.setattr(DataDirectory, "logs_at_once", 3)
    async with EmbeddedCluster(data_dir=tmp_path / "data") as cluster:
        assert await _produced(cluster, 30) == {ErrorCode.NONE}
        assert len(list((tmp_path / "data").glob("wide-*/*.log"))) == 30
    assert max(counts.logs) == 3
