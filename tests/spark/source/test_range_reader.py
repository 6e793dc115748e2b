"""Ranges of offsets, read from an embedded broker."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from aioproducer.errors import OffsetOutOfRangeException, UnknownTopicOrPartitionException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.spark.source.offset_plan import OffsetRange
from aioproducer.testing.threaded_cluster import ThreadedCluster
from tests.spark.topics import fill, transactions
from tests.threads import assert_no_thread_is_left

pa = pytest.importorskip("pyarrow")

from aioproducer.spark.source import range_reader  # noqa: E402 - they import pyarrow
from aioproducer.spark.source.arrow_columns import ARROW_TYPES  # noqa: E402

QUICK = {"retry.backoff.ms": "1", "retry.backoff.max.ms": "5", "reconnect.backoff.ms": "1", "fetch.max.wait.ms": "5"}


@pytest.fixture
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster(topics={"t": 2}) as cluster:
        yield cluster


def batches(
    cluster: ThreadedCluster, begin: int, end: int, *names: str, lenient: Any = False, **config: str
) -> Iterator[Any]:
    schema = pa.schema([(name, ARROW_TYPES[name]) for name in names or ("offset", "value")])
    configs = {"bootstrap.servers": cluster.bootstrap_servers, **QUICK, **config}
    wanted = OffsetRange("t", 0, begin, end)
    return range_reader.read_range(configs, wanted, schema, fail_on_data_loss=not lenient)


def rows(found: Iterator[Any]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]


def offsets(found: Iterator[Any]) -> list[int]:
    return [row["offset"] for row in rows(found)]


@pytest.mark.parametrize(("begin", "end"), [(0, 100), (0, 1), (99, 100), (13, 57)])
def test_exactly_the_range_is_read(cluster: ThreadedCluster, begin: int, end: int) -> None:
    fill(cluster, "t", 100)
    found = rows(batches(cluster, begin, end))
    assert found == [{"offset": at, "value": b"0:%d" % at} for at in range(begin, end)]


def test_many_fetches_and_many_batches(cluster: ThreadedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(cluster, "t", 300, batch_size=200, batch_max_size=200)
    monkeypatch.setattr(range_reader, "FULL", 500)
    found = list(batches(cluster, 5, 295, **{"max.partition.fetch.bytes": "900"}))
    assert len(found) > 10
    assert offsets(iter(found)) == list(range(5, 295))


def test_committed_records_and_markers(cluster: ThreadedCluster) -> None:
    transactions(cluster, "t", "commit", "abort", "commit")
    everything = rows(batches(cluster, 0, 9, "offset", "value"))
    assert [row["offset"] for row in everything] == [0, 1, 3, 4, 6, 7]
    committed = {"isolation.level": "read_committed"}
    assert offsets(batches(cluster, 0, 9, **committed)) == [0, 1, 6, 7]
    found = rows(batches(cluster, 0, 9, "offset", "key", "batch", **committed))
    assert [(row["offset"], row["batch"]["control"]) for row in found] == [
        (0, False),
        (1, False),
        (2, True),
        (5, True),
        (6, False),
        (7, False),
        (8, True),
    ]
    assert [row["key"] for row in found if row["batch"]["control"]] == [b"\0\0\0\1", b"\0\0\0\0", b"\0\0\0\1"]
    assert all(row["batch"]["transactional"] and row["batch"]["producerId"] is not None for row in found)


def test_a_range_of_markers_alone(cluster: ThreadedCluster) -> None:
    transactions(cluster, "t", "commit")
    assert offsets(batches(cluster, 2, 3)) == []


def test_records_lost_to_retention_are_an_error_or_a_warning(
    cluster: ThreadedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    fill(cluster, "t", 20)
    cluster.call(lambda embedded: embedded.log("t").delete_records(8))
    with pytest.raises(OffsetOutOfRangeException, match="offset 3 is not in the log of t-0: it begins at 8") as raised:
        offsets(batches(cluster, 3, 15))
    assert raised.value.__notes__ == [
        "offsets 3 to 14 were to be read; with failOnDataLoss=false what is left is read, and this is a warning"
    ]
    with caplog.at_level(logging.WARNING):
        assert offsets(batches(cluster, 3, 15, lenient=True)) == list(range(8, 15))
        assert offsets(batches(cluster, 3, 7, lenient=True)) == []
    assert caplog.text.count("t-0: data may have been lost: offset 3 is not in the log") == 2


def test_a_log_that_has_become_shorter(cluster: ThreadedCluster, caplog: pytest.LogCaptureFixture) -> None:
    fill(cluster, "t", 5)
    quick = {"default.api.timeout.ms": "500"}
    with pytest.raises(
        OffsetOutOfRangeException, match=r"nothing has come for offset 5 of t-0 .* ends at 5, and 9 was"
    ):
        offsets(batches(cluster, 0, 9, **quick))
    assert offsets(batches(cluster, 0, 9, lenient=True, **quick)) == list(range(5))
    with pytest.raises(OffsetOutOfRangeException, match="begins at 0 and ends at 5"):
        offsets(batches(cluster, 7, 9, **quick))


def test_a_topic_that_is_gone(cluster: ThreadedCluster) -> None:
    cluster.call(lambda embedded: embedded.delete_topic("t"))
    quick = {"default.api.timeout.ms": "500"}
    with pytest.raises(UnknownTopicOrPartitionException, match="'t'"):
        offsets(batches(cluster, 0, 9, **quick))
    assert offsets(batches(cluster, 0, 9, lenient=True, **quick)) == []


def test_transient_errors_are_retried(cluster: ThreadedCluster) -> None:
    fill(cluster, "t", 10)
    cluster.faults.on(ApiKey.FETCH).answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    cluster.faults.on(ApiKey.FETCH).drop_response()
    assert offsets(batches(cluster, 0, 10)) == list(range(10))
    cluster.faults.verify()


def test_left_early_it_leaves_nothing_behind(cluster: ThreadedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(cluster, "t", 300, batch_size=200, batch_max_size=200)
    monkeypatch.setattr(range_reader, "FULL", 500)
    before = threading.enumerate()
    found = batches(cluster, 0, 300, **{"max.partition.fetch.bytes": "900"})
    next(found)
    found.close()  # type: ignore[attr-defined]
    assert_no_thread_is_left(before)
