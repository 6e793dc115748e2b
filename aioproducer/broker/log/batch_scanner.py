"""Reads batches in a thread when reading them would hold up the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from aioproducer.broker.log.log_validator import MAX_DECOMPRESSED_SIZE, Scan, Wanted, scan
from aioproducer.configs.config_def import LONG_MAX
from aioproducer.records.compression import CompressionType, DecompressedTooLargeException
from aioproducer.records.record_batch import RecordBatch
from aioproducer.tasks.background_threads import BackgroundThreads
from aioproducer.tasks.turns import Turns

log = logging.getLogger(__name__)

T = TypeVar("T")

DECOMPRESSED_PER_BYTE = 16
"""Decompressed bytes that the batches of one request may have for each byte of their own, in addition to the limit of
one batch."""


def _never() -> bool:
    return False


def scan_all(
    batches: Sequence[tuple[RecordBatch, Wanted | None]], is_abandoned: Callable[[], bool] = _never
) -> list[Scan]:
    """Reads each batch of one request, and compresses it anew if another codec is wanted. A batch that exceeds the
    request's budget of decompressed bytes gets a problem. Once the request is abandoned no further batch is read."""
    left = MAX_DECOMPRESSED_SIZE + DECOMPRESSED_PER_BYTE * sum(batch.size_in_bytes for batch, _ in batches)
    scans = []
    for batch, wanted in batches:
        if is_abandoned():
            break
        try:
            if left <= 0 and batch.codec is not CompressionType.NONE:
                raise DecompressedTooLargeException("nothing is left")
            found = scan(batch, min(left, MAX_DECOMPRESSED_SIZE), wanted)
        except DecompressedTooLargeException:
            left = 0
            problem = "the batches of one request have too many decompressed bytes"
            found = Scan(batch.crc, batch.max_timestamp, LONG_MAX, 0, problem)
        left -= found.decompressed
        scans.append(found)
    return scans


class BatchScanner:
    """Reads one batch after the other in one of the node's threads, so only one at a time takes memory decompressed."""

    def __init__(self, threads: BackgroundThreads) -> None:
        self._turns = Turns(threads.run, 1)
        self._requests: set[asyncio.Future[Any]] = set()
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether no further results are needed. Work in a thread checks this after each batch."""
        return self._closed

    def scan(
        self,
        batches: Sequence[tuple[RecordBatch, Wanted | None]],
        then: Callable[[asyncio.Future[list[Scan]]], object],
    ) -> None:
        """Calls ``then`` in the loop with what :func:`scan_all` returns."""
        self.run(partial(scan_all, batches, lambda: self._closed), then)

    def run(self, read: Callable[[], T], then: Callable[[asyncio.Future[T]], object]) -> None:
        """Calls ``then`` in the loop with the result of ``read``, which may only read batches. If the node stops
        first, the future is cancelled."""
        found = self._turns.run(read)
        self._requests.add(found)
        found.add_done_callback(self._requests.discard)
        found.add_done_callback(then)

    def close(self) -> None:
        """Drops all requests: those that wait, and the one that is being read, whose thread ends after its batch."""
        self._closed = True
        if self._requests:
            log.warning("the node stops before it has read the batches of %d requests: dropped", len(self._requests))
        self._turns.close()
        for found in tuple(self._requests):
            found.cancel()
