"""confluent-kafka's AIOProducer: ``produce`` and the future of every record.

It collects 1,000 records, or waits a second, before it hands them to librdkafka, so that records awaited one by one
are not its work; it takes no headers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from confluent_kafka import KafkaException, libversion, version
from confluent_kafka.aio import AIOProducer

from benchmarks.clients.chunks import CHUNK, Chunks
from benchmarks.clients.client import PythonClient
from benchmarks.clients.confluent_kafka import config_of
from benchmarks.works.run import Run
from benchmarks.works.works import Work


class ConfluentKafkaAio(PythonClient):
    share = 4

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._producer = AIOProducer(config_of(run))

    @classmethod
    def can(cls, work: Work) -> bool:
        return super().can(work) and not work.keyed

    @classmethod
    def about(cls) -> str:
        return f"{version()}, librdkafka {libversion()[0]}"

    async def start(self) -> None:
        """It has begun to connect when it was made; the warm-up waits for it."""

    async def close(self) -> None:
        await self._producer.close()

    async def stream(self, records: int) -> Counter[str]:
        failures: Counter[str] = Counter()
        chunks: Chunks[asyncio.Future[Any]] = Chunks(self.run)
        for given in self.payload.chunks(records, CHUNK):
            chunk = [await self._producer.produce(topic, value, key) for topic, key, value in given]
            for due in chunks.due_after(chunk):
                await _check(due, failures)
        await self._producer.flush()
        for due in chunks.rest():
            await _check(due, failures)
        return failures


async def _check(futures: list[asyncio.Future[Any]], failures: Counter[str]) -> None:
    for future in futures:
        try:
            await future
        except KafkaException as error:
            failures[error.args[0].name()] += 1
