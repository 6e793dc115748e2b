from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aioproducer.broker.log import batch_scanner, log_validator
from aioproducer.broker.log.batch_scanner import BatchScanner, scan_all
from aioproducer.broker.log.log_validator import Scan, scan
from aioproducer.records.compression import CompressionType
from aioproducer.records.record_batch import RecordBatch
from aioproducer.tasks.background_threads import BackgroundThreads
from tests.broker.raw_clients.batches import NOW_MS, make_batch


@pytest.fixture
def background() -> Iterator[BackgroundThreads]:
    threads = BackgroundThreads("background", 2)
    yield threads
    threads.close()


PLAIN = RecordBatch(make_batch(bytes(5000)))
PACKED = RecordBatch(make_batch(bytes(5000), b"b", codec=CompressionType.GZIP))


def test_a_scan_of_all_batches_finds_the_same_as_one_of_each() -> None:
    found = scan_all([(PLAIN, None), (PACKED, None)])
    assert found == [scan(PLAIN), scan(PACKED)]
    assert (found[1].max_timestamp, found[1].decompressed) == (NOW_MS + 1, 5000 + 9 + 8)


def test_a_request_has_a_budget_and_uncompressed_batches_need_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (batch_scanner, log_validator):
        monkeypatch.setattr(module, "MAX_DECOMPRESSED_SIZE", 6000)
    monkeypatch.setattr(batch_scanner, "DECOMPRESSED_PER_BYTE", 0)
    found = scan_all([(one, None) for one in (PACKED, PLAIN, PACKED, PACKED, PLAIN)])
    assert [one.problem == "" for one in found] == [True, True, False, False, True]
    assert "too many decompressed bytes" in found[2].problem


async def test_in_a_thread_and_back_in_the_loop(background: BackgroundThreads) -> None:
    scanner = BatchScanner(background)
    threads: list[str] = []
    done = asyncio.Event()

    def then(found: asyncio.Future[list[Scan]]) -> None:
        assert found.result() == [scan(PLAIN)]
        threads.append(threading.current_thread().name)
        done.set()

    scanner.scan([(PLAIN, None)], then)
    await done.wait()
    assert threads == [threading.main_thread().name]
    scanner.close()
    scanner.close()


async def test_batches_are_scanned_one_at_a_time_and_dropped_when_the_scanner_is_closed(
    background: BackgroundThreads, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scanner = BatchScanner(background)
    begun, go_on = threading.Event(), threading.Event()

    def slow(batches: list[RecordBatch], is_abandoned: Callable[[], bool]) -> list[Scan]:
        begun.set()
        go_on.wait()
        return []

    monkeypatch.setattr(batch_scanner, "scan_all", slow)
    ended: list[bool] = []
    done = asyncio.Event()

    def then(found: asyncio.Future[list[Scan]]) -> None:
        ended.append(found.cancelled())
        if len(ended) == 2:
            done.set()

    scanner.scan([(PLAIN, None)], then)
    begun.wait()
    scanner.scan([(PLAIN, None)], then)
    assert await background.run(lambda: "free") == "free", "and other work has the other threads"
    scanner.close()
    go_on.set()
    await done.wait()
    assert ended == [True, True]
    assert [one.getMessage() for one in caplog.records] == [
        "the node stops before it has read the batches of 2 requests: dropped"
    ]


async def test_no_further_batch_is_read_once_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    background = BackgroundThreads("background", 1)
    scanner = BatchScanner(background)
    begun, go_on = threading.Event(), threading.Event()
    scans = 0

    def slow(*batch: Any) -> Scan:
        nonlocal scans
        scans += 1
        begun.set()
        go_on.wait()
        return scan(*batch)

    monkeypatch.setattr(batch_scanner, "scan", slow)
    scanner.scan([(PLAIN, None)] * 60, lambda found: None)
    await asyncio.to_thread(begun.wait)
    after = background.run(lambda: "the thread is free")
    scanner.close()
    go_on.set()
    assert await after == "the thread is free"
    assert scans == 1
    background.close()
