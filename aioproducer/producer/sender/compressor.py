"""Compresses large batches in worker threads, so that none blocks the event loop.

The codecs release the GIL while they work. A batch is compressed once it takes no more records, and is drained only
after that: it has no sequence yet, and keeps its place in its partition. So threads do not affect order, sequences and
retries. A batch to split is decompressed likewise, and cut on the loop in slices: it waits in its place like a retry.
Either may end meanwhile, by its time-out or an abort; then the result is dropped.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.exchange.sealer import Sealer
from aioproducer.timing.time_slice import TimeSlice

MOST_THREADS = 4

Then = Callable[[ProducerBatch, bytes], object]
"""Handles a thread's result for a batch."""


class Compressor:
    """``on_done(queue)`` is called when a batch of the queue is ready, ``on_crash(error)`` if that fails.

    The threads are the loop's ``run_in_executor``: in a simulation the loop calls at once and reports the result later.
    """

    def __init__(
        self,
        sealer: Sealer,
        loop: asyncio.AbstractEventLoop,
        *,
        on_done: Callable[[PartitionQueue], object],
        on_crash: Callable[[BaseException], object],
    ) -> None:
        self._sealer = sealer
        self._on_done = on_done
        self._on_crash = on_crash
        self._threads = ThreadPoolExecutor(
            min(MOST_THREADS, os.cpu_count() or 1), thread_name_prefix="aioproducer compression"
        )  # starts a thread only when there is work
        self._loop = loop
        self._slice = TimeSlice(loop)
        self._steps: deque[tuple[PartitionQueue, ProducerBatch, Callable[[], bool]]] = deque()
        """What is done in slices."""
        self._run: Callable[..., asyncio.Future[bytes]] = partial(loop.run_in_executor, self._threads)
        self._under_way: set[asyncio.Future[bytes]] = set()

    def begin(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Compresses a closed batch; if no thread takes it, it is compressed when drained."""
        _ = self._begin(self._sealer.compressed, queue, batch, self._sealer.take)

    def undo(self, queue: PartitionQueue, batch: ProducerBatch, then: Then) -> bool:
        """Decompresses a batch in line, then calls ``then(batch, records)``. False, and nothing done, if no thread
        takes it.
        """
        return self._begin(self._sealer.records_of, queue, batch, then)

    def in_slices(self, queue: PartitionQueue, batch: ProducerBatch, step: Callable[[], bool]) -> None:
        """Calls ``step`` until it returns True, or the batch ends. Other tasks get a turn after each slice, which all
        batches share, and the batch waits in its place.
        """
        batch.compressing = True
        self._steps.append((queue, batch, step))
        if len(self._steps) == 1:
            self._loop.call_soon(self._next_slice)

    def _next_slice(self) -> None:
        self._slice.begin()
        try:
            while self._steps:
                queue, batch, step = self._steps[0]
                if batch.result.done() or step():
                    batch.compressing = False
                    self._steps.popleft()
                    self._on_done(queue)
                if self._slice.over():
                    break
        except Exception as bug:  # the loop would only log it, and waiters would never end
            self._on_crash(bug)
            return
        if self._steps:
            self._loop.call_soon(self._next_slice)

    def _begin(
        self, work: Callable[[ProducerBatch], bytes], queue: PartitionQueue, batch: ProducerBatch, then: Then
    ) -> bool:
        try:
            future = self._run(work, batch)
        except RuntimeError:
            return False  # the interpreter is ending, and threads take no more work
        batch.compressing = True
        self._under_way.add(future)
        future.add_done_callback(partial(self._ended, queue, batch, then))
        return True

    def _ended(self, queue: PartitionQueue, batch: ProducerBatch, then: Then, future: asyncio.Future[bytes]) -> None:
        self._under_way.discard(future)
        batch.compressing = False
        if batch.result.done() or future.cancelled():
            return
        try:
            then(batch, future.result())
            self._on_done(queue)
        except Exception as bug:  # the loop would only log it, and waiters would never end
            self._on_crash(bug)

    def stop(self) -> None:
        """Starts no more work; what a thread is doing, it finishes."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def stopped(self) -> None:
        """Returns when no thread is at work: at most after the compression of one batch."""
        self.stop()
        if self._under_way:
            await asyncio.wait(self._under_way)
