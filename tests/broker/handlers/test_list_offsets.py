from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.broker.log.timestamp_search import TimestampAndOffset, TimestampSearch
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch import RecordBatch

from . import NOW_MS, RawClient, make_batch

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)


@pytest.fixture(autouse=True)
def log(cluster: EmbeddedCluster) -> None:
    """Offsets 1 to 4 with times 101, 102, 50 and 51; the batch with 0 was deleted."""
    cluster.create_topic("t")
    log = cluster.log("t")
    for first, *_ in ([100, 101, 102], [50, 51]):
        batch = make_batch(b"a", b"b", b"c") if first == 100 else make_batch(b"a", b"b")
        count = 3 if first == 100 else 2
        stamped = make_batch(*[b"x"] * count, base_timestamp=first, max_timestamp=first + count - 1)
        assert len(stamped) == len(batch)
        log.append(RecordBatch(stamped), leader_epoch=count, now_ms=NOW_MS)
    log.delete_records(1)


async def list_offset(client: RawClient, timestamp: int, version: int = 11, **more: Any) -> Any:
    partition = ListOffsetsPartition(more.pop("index", 0), more.pop("current_leader_epoch", -1), timestamp)
    request = ListOffsetsRequest(-1, topics=[ListOffsetsTopic(more.pop("topic", "t"), [partition])])
    (topic,) = (await client.request(request, version)).topics
    (answer,) = topic.partitions
    return answer


@pytest.mark.parametrize("version", range(1, 12))
async def test_ends_in_every_version(client: RawClient, version: int) -> None:
    latest = await list_offset(client, LATEST, version)
    assert (latest.error_code, latest.timestamp, latest.offset) == (ErrorCode.NONE, -1, 5)
    earliest = await list_offset(client, EARLIEST, version)
    assert (earliest.error_code, earliest.timestamp, earliest.offset) == (ErrorCode.NONE, -1, 1)
    assert (latest.leader_epoch, earliest.leader_epoch) == ((0, 3) if version >= 4 else (-1, -1))


@pytest.mark.parametrize(
    ("timestamp", "offset", "found"), [(0, 1, 101), (101, 1, 101), (102, 2, 102), (103, -1, -1), (50, 1, 101)]
)
async def test_by_timestamp(client: RawClient, timestamp: int, offset: int, found: int) -> None:
    answer = await list_offset(client, timestamp)
    assert (answer.error_code, answer.offset, answer.timestamp) == (ErrorCode.NONE, offset, found)


async def test_the_largest_timestamp(client: RawClient) -> None:
    answer = await list_offset(client, MAX_TIMESTAMP)
    assert (answer.offset, answer.timestamp, answer.leader_epoch) == (2, 102, 3)


async def test_there_is_no_tiered_storage(client: RawClient) -> None:
    assert (await list_offset(client, EARLIEST_LOCAL)).offset == 1
    assert (await list_offset(client, LATEST_TIERED)).offset == -1
    assert (await list_offset(client, EARLIEST_PENDING_UPLOAD)).offset == -1


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (EARLIEST_PENDING_UPLOAD, 10), (-7, 11)],
)
async def test_a_special_timestamp_is_unsupported_by_older_versions(
    client: RawClient, timestamp: int, version: int
) -> None:
    assert (await list_offset(client, timestamp, version)).error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_unknown_partitions(client: RawClient) -> None:
    assert (await list_offset(client, LATEST, index=1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await list_offset(client, LATEST, topic="x")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_partition_named_twice(client: RawClient) -> None:
    partitions = [ListOffsetsPartition(0, -1, LATEST), ListOffsetsPartition(0, -1, EARLIEST)]
    response = await client.request(ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", partitions)]), 11)
    assert [answer.error_code for answer in response.topics[0].partitions] == [ErrorCode.INVALID_REQUEST] * 2


@pytest.mark.parametrize("cluster", [{"nodes": 2}], indirect=True)
async def test_leaders(cluster: EmbeddedCluster, client: RawClient) -> None:
    assert (await list_offset(client, LATEST, current_leader_epoch=1)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    cluster.move_leader("t", 0, 1)
    assert (await list_offset(client, LATEST)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.move_leader("t", 0, 0)
    assert (await list_offset(client, LATEST, current_leader_epoch=1)).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (await list_offset(client, LATEST, current_leader_epoch=2)).leader_epoch == 2


async def test_compressed_batches_are_searched_in_a_thread(
    cluster: EmbeddedCluster, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    run = TimestampSearch.run

    def noted(search: TimestampSearch) -> TimestampAndOffset | None:
        threads.append(threading.current_thread().name.partition("_")[0])
        return run(search)

    monkeypatch.setattr(TimestampSearch, "run", noted)
    cluster.create_topic("packed", partitions=3)
    for index, codec in enumerate([CompressionType.GZIP, CompressionType.NONE]):
        batch = RecordBatch(make_batch(b"a", b"b", b"c", codec=codec))
        cluster.log("packed", index).append(batch, leader_epoch=0, now_ms=NOW_MS)
    wanted = [ListOffsetsPartition(index, -1, time) for index, time in enumerate([NOW_MS + 1, -3, NOW_MS])]
    response = await client.request(ListOffsetsRequest(-1, 0, [ListOffsetsTopic("packed", wanted)]), 9)
    answers = [(one.error_code, one.timestamp, one.offset) for one in response.topics[0].partitions]
    assert answers == [(ErrorCode.NONE, NOW_MS + 1, 1), (ErrorCode.NONE, NOW_MS + 2, 2), (ErrorCode.NONE, -1, -1)]
    assert sorted(threads) == sorted([threading.main_thread().name, "aioproducer-background-0"])


def flip_a_bit_of(file: Path, text: bytes) -> None:
    content = bytearray(file.read_bytes())
    content[content.index(text)] ^= 1
    file.write_bytes(content)


async def test_the_log_start_is_known_though_the_first_batch_is_damaged(tmp_path: Path) -> None:
    """Or a consumer that begins there would ask for ever, and read nothing of the rest."""
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        cluster.create_topic("t")
        for value in (b"first", b"second"):
            cluster.log("t").append(RecordBatch(make_batch(value)), leader_epoch=3, now_ms=NOW_MS)
    flip_a_bit_of(tmp_path / "t-0" / "00000000000000000000.log", b"first")
    async with EmbeddedCluster(data_dir=tmp_path) as cluster:
        client = await RawClient.connect(cluster.bootstrap_servers)
        wanted = [ListOffsetsPartition(0, -1, -2)]
        answer = await client.request(ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", wanted)]), 9)
        await client.close()
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.offset, found.leader_epoch) == (ErrorCode.NONE, 0, 3)
