"""aiokafka: ``send`` and the future of every record; ``send_and_wait`` for those who await each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.record import default_records

from benchmarks.clients.chunks import CHUNK, Chunks
from benchmarks.clients.client import PythonClient
from benchmarks.works.run import Run
from benchmarks.works.works import STREAM, TASKS


class Aiokafka(PythonClient):
    ways = (STREAM, TASKS)
    share = 4
    producer_class: Any = AIOKafkaProducer

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        config: dict[str, Any] = {"max_batch_size": run.batch_size} if run.batch_size else {}
        self._producer = self.producer_class(
            bootstrap_servers=run.bootstrap_servers,
            acks="all",
            enable_idempotence=True,
            linger_ms=run.linger_ms,
            compression_type=None if run.compression == "none" else run.compression,
            **config,
        )

    @classmethod
    def about(cls) -> str:
        pure = default_records.DefaultRecordBatchBuilder is default_records._DefaultRecordBatchBuilderPy
        return f"{version('aiokafka')}, {'pure Python' if pure else 'with its Cython extensions'}"

    async def start(self) -> None:
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.stop()

    async def stream(self, records: int) -> Counter[str]:
        send, headers = self._producer.send, self.payload.headers
        failures: Counter[str] = Counter()
        chunks: Chunks[asyncio.Future[object]] = Chunks(self.run)
        for given in self.payload.chunks(records, CHUNK):
            chunk = [await send(topic, value, key=key, headers=headers) for topic, key, value in given]
            for due in chunks.due_after(chunk):
                await _check(due, failures)
        await self._producer.flush()
        for due in chunks.rest():
            await _check(due, failures)
        return failures

    def awaitable_send(self) -> Callable[[str, bytes], Awaitable[object]]:
        send_and_wait: Callable[[str, bytes], Awaitable[object]] = self._producer.send_and_wait
        return send_and_wait


async def _check(futures: list[asyncio.Future[object]], failures: Counter[str]) -> None:
    for future in futures:
        try:
            await future
        except KafkaError as error:
            failures[type(error).__name__] += 1
