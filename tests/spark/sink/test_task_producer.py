"""The producer of a task, with a delivery log; on the embedded broker, and without Spark."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.delivery_log import read_events
from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.sink import task_producer as module
from aioproducer.spark.sink.sink_options import SinkOptions
from aioproducer.spark.sink.task_producer import task_producer

ROWS = 20


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(configs={"auto.create.topics.enable": "false"}) as cluster:
        cluster.create_topic("t", 1)
        cluster.create_topic("log", 1)
        yield cluster


def options(cluster: EmbeddedCluster, log: str, **more: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": "t", "deliveryLog": log, **more}
    return SinkOptions.of(given, streaming=True)


async def write(chosen: SinkOptions, transactional_id: str | None = None) -> None:
    async with task_producer(chosen, transactional_id) as producer:
        if transactional_id is not None:
            await producer.init_transactions()
            await producer.begin_transaction()
        (await producer.send_many("t", [b"%d" % number for number in range(ROWS)])).raise_if_failed()
        if transactional_id is not None:
            await producer.commit_transaction()


def logged(cluster: EmbeddedCluster) -> list[dict[str, Any]]:
    return [json.loads(record.value or b"") for record in cluster.log("log").records()]


WHOLE = ["open", *["sent"] * ROWS, *["acked"] * ROWS, "close"]


def stamped(cluster: EmbeddedCluster) -> int:
    return sum(any(name == "aioproducer.stream" for name, _ in record.headers) for record in cluster.log("t").records())


@pytest.mark.parametrize("transactional_id", [None, "tx"])
async def test_a_topic_has_the_whole_log_when_the_task_is_done(
    cluster: EmbeddedCluster, transactional_id: str | None
) -> None:
    more = {} if transactional_id is None else {"deliveryGuarantee": "exactly-once"}
    await write(options(cluster, "topic:log", **more), transactional_id)
    assert sorted(event["event"] for event in logged(cluster)) == sorted(WHOLE)
    assert stamped(cluster) == ROWS


async def test_each_task_has_a_file_of_its_own(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    for _ in range(2):
        await write(options(cluster, str(tmp_path / "logs")))
    files = sorted((tmp_path / "logs").iterdir())
    events = [list(read_events(file)) for file in files]
    assert [sorted(event["event"] for event in of_file) for of_file in events] == [sorted(WHOLE)] * 2
    assert [{event["stream"] for event in of_file} for of_file in events] == [{file.stem} for file in files]


async def test_lines_beyond_what_may_wait_are_counted(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_CAPACITY", 500)
    await write(options(cluster, "topic:log"))
    events = logged(cluster)
    (lost,) = [event for event in events if event["event"] == "lost"]
    assert lost["count"] + len(events) - 1 == len(WHOLE)
    assert "lines of the delivery log could not be written to topic log" in caplog.text
    assert stamped(cluster) == ROWS


async def test_without_a_log_nothing_is_stamped(cluster: EmbeddedCluster) -> None:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "topic": "t"}
    await write(SinkOptions.of(given, streaming=True))
    assert stamped(cluster) == 0


@pytest.mark.parametrize("below", ["", "below"])
async def test_a_directory_that_cannot_be_made_is_named(cluster: EmbeddedCluster, tmp_path: Path, below: str) -> None:
    (tmp_path / "a file").touch()
    directory = tmp_path / "a file" / below
    with pytest.raises(IllegalArgumentException, match=r'option "deliveryLog" is .*a file.* this task cannot write'):
        await write(options(cluster, str(directory)))
