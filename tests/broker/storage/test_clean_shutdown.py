"""A start after a clean shutdown finds what reading every batch would, and reads none."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from aioproducer import KafkaProducer
from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.log.log_checkpoint import LogCheckpoint, SegmentCheckpoint
from aioproducer.broker.storage.clean_shutdown import (
    CLEAN_SHUTDOWN,
    read_clean_shutdown,
    remove_clean_shutdown,
    write_clean_shutdown,
)
from aioproducer.broker.storage.frames import Key, frame
from aioproducer.broker.storage.segments import stored_batches
from aioproducer.errors import DataDirectoryException
from tests.broker.storage.faulty_files import Crash, FaultyFiles

LOGS: dict[Key, LogCheckpoint] = {
    ("a", 0): LogCheckpoint(
        [SegmentCheckpoint(3, [70, 80])], 1, 4, 5, [4], [-1], [(7, 0, -1, [])], [(7, 4)], [], [(2, 4)]
    ),
    ("b", 1): LogCheckpoint([], 0, 0, 0, [], [], [], [], [(1, 2, 3)], []),
}
Logs = dict[tuple[str, int], LogCheckpoint]


def take(files: FaultyFiles) -> dict[Key, LogCheckpoint]:
    found = read_clean_shutdown(files)
    remove_clean_shutdown(files)
    return found


def test_a_clean_shutdown_file_is_read_once() -> None:
    files = FaultyFiles()
    assert take(files) == {}
    write_clean_shutdown(files, LOGS)
    files.crash()
    assert frame(take(files)) == frame(LOGS)
    files.crash()
    assert take(files) == {}, "it was gone before anything could change"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("at", range(1, 6))
def test_a_crash_leaves_all_of_it_or_nothing(at: int, seed: int) -> None:
    files = FaultyFiles(seed)
    files.crash_at = at
    with pytest.raises(Crash):
        write_clean_shutdown(files, LOGS)
    files.crash()
    assert take(files).keys() in ({}.keys(), LOGS.keys())
    assert files.names("") == []


def test_torn_frames_are_left_out() -> None:
    files = FaultyFiles()
    write_clean_shutdown(files, LOGS)
    files.truncate(CLEAN_SHUTDOWN, files.size(CLEAN_SHUTDOWN) - 1)
    assert list(take(files)) == [("a", 0)]


async def fill(directory: Path) -> Logs:
    """Closes a cluster with a bit of everything in good order."""
    configs = {"log.segment.bytes": 1024 * 1024, "transaction.max.timeout.ms": 600_000}
    async with EmbeddedCluster(data_dir=directory, configs=configs) as cluster:
        cluster.create_topic("t", 2)
        servers = cluster.bootstrap_servers
        async with KafkaProducer(bootstrap_servers=servers, batch_size=1) as producer:
            for index in range(12):
                await producer.send("t", bytes(300_000), partition=0)
                await producer.send("t", b"%d" % index, partition=1)
        cluster.log("t", 0).delete_records(5)
        async with KafkaProducer(bootstrap_servers=servers, transactional_id="x") as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("t", b"committed", partition=1)
            await producer.begin_transaction()
            await producer.send("t", b"aborted", partition=1)
            await producer.abort_transaction()
    return checkpoints(cluster)


def checkpoints(cluster: EmbeddedCluster) -> Logs:
    return {
        (topic.name, partition.index): partition.log.checkpoint()
        for topic in cluster.topics
        for partition in topic.partitions
    }


@pytest.fixture
async def closed(tmp_path: Path) -> tuple[Path, Logs]:
    directory = tmp_path / "data"
    return directory, await fill(directory)


async def start(directory: Path) -> Logs:
    async with EmbeddedCluster(data_dir=directory) as cluster:
        assert not (directory / CLEAN_SHUTDOWN).exists(), "from now on a crash would be one"
        assert [record.value for record in cluster.log("t", 1).records()][-2:] == [b"committed", b"aborted"]
        found = checkpoints(cluster)
    assert (directory / CLEAN_SHUTDOWN).exists()
    return found


async def test_the_next_start_reads_no_batch(closed: tuple[Path, Logs], monkeypatch: pytest.MonkeyPatch) -> None:
    directory, before = closed
    assert before["t", 0].segments[0].base_offset > 0
    assert before["t", 1].aborted_transactions
    monkeypatch.delattr(stored_batches, "LogRecovery")
    assert await start(directory) == before
    assert await start(directory) == before


async def test_to_read_everything_finds_the_same(closed: tuple[Path, Logs]) -> None:
    directory, before = closed
    (directory / CLEAN_SHUTDOWN).unlink()
    assert await start(directory) == before


async def test_after_a_crash_everything_is_read(closed: tuple[Path, Logs], tmp_path: Path) -> None:
    directory, before = closed
    copy = tmp_path / "crashed"
    async with EmbeddedCluster(data_dir=directory):
        shutil.copytree(directory, copy)
    last = sorted((copy / "t-0").glob("*.log"))[-1]
    data = bytearray(last.read_bytes())
    data[-1] ^= 1
    last.write_bytes(data)
    end = before["t", 0].log_end_offset
    with pytest.raises(DataDirectoryException, match=f"t-0: records {end - 1} to {end - 1} cannot be read"):
        await EmbeddedCluster(data_dir=copy).start()


async def test_a_file_of_another_size_is_read(closed: tuple[Path, Logs], caplog: pytest.LogCaptureFixture) -> None:
    directory, before = closed
    (segment,) = (directory / "t-1").glob("*.log")
    with segment.open("ab") as file:
        file.write(b"not a batch")
    with caplog.at_level(logging.WARNING):
        assert await start(directory) == before
    assert "t-1 has changed since the clean shutdown: the start reads all of it" in caplog.text
    assert "is cut off at byte" in caplog.text
    assert "t-0 is not" not in caplog.text
