"""Reads batches in a thread when that takes more time than the event loop has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from aioproducer.broker.log.log_validator import MAX_DECOMPRESSED_SIZE, Codec, Scan, scan
from aioproducer.configs.config_def import LONG_MAX
from aioproducer.records.compression import CompressionType, DecompressedTooLargeException
from aioproducer.records.record_batch import RecordBatch
from aioproducer.tasks.background_threads import BackgroundThreads
from aioproducer.tasks.turns import Turns

T = TypeVar("T")

DECOMPRESSED_PER_BYTE = 16
"""Bytes that the batches of one request may have decompressed for each of their own, beyond what one batch may have."""


def scan_all(batches: Sequence[tuple[RecordBatch, Codec | None]]) -> list[Scan]:
    """What reading each of the batches of one request shows, and each in the codec that is wanted. What is beyond its
    budget is a problem of the batch."""
    left = MAX_DECOMPRESSED_SIZE + DECOMPRESSED_PER_BYTE * sum(batch.size_in_bytes for batch, _ in batches)
    scans = []
    for batch, wanted in batches:
        try:
            if left <= 0 and batch.codec is not CompressionType.NONE:
                raise DecompressedTooLargeException("nothing is left")
            found = scan(batch, min(left, MAX_DECOMPRESSED_SIZE), wanted)
        except DecompressedTooLargeException:
            left = 0
            problem = "the batches of one request have too many bytes decompressed"
            found = Scan(batch.crc, batch.max_timestamp, LONG_MAX, 0, problem)
        left -= found.decompressed
        scans.append(found)
    return scans


class BatchScanner:
    """Reads with one of a node's threads at a time, one batch after the other: no more than one takes memory."""

    def __init__(self, threads: BackgroundThreads) -> None:
        self._turns = Turns(threads.run, 1)

    def scan(
        self,
        batches: Sequence[tuple[RecordBatch, Codec | None]],
        then: Callable[[asyncio.Future[list[Scan]]], object],
    ) -> None:
        """Calls ``then`` in the loop with what :func:`scan_all` returns."""
        self.run(partial(scan_all, batches), then)

    def run(self, read: Callable[[], T], then: Callable[[asyncio.Future[T]], object]) -> None:
        """Calls ``then`` in the loop with what ``read`` returns, which reads batches and touches nothing else; with a
        cancelled future if the node stops before."""
        self._turns.run(read).add_done_callback(then)

    def close(self) -> None:
        """What waits is dropped."""
        self._turns.close()
