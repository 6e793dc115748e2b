"""aioproducer's producer for threads: ``send`` and a look at every delivery."""

from __future__ import annotations

from collections import Counter
from typing import Any

from aioproducer.sync import Delivery, KafkaProducer
from benchmarks.clients.client import PythonClient
from benchmarks.environment import aioproducer_build
from benchmarks.run import Run
from benchmarks.works import STREAM, Work

CHUNK = 10_000
"""Deliveries are looked at in chunks of so many, each while the next one is on its way."""


class Sync(PythonClient):
    """It has a thread of its own and an event loop there, and knows nothing of the one that it is measured in."""

    ways = (STREAM,)
    share = 4
    beats = False

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        config: dict[str, Any] = {"batch_size": run.batch_size} if run.batch_size else {}
        self._producer = KafkaProducer(
            bootstrap_servers=run.bootstrap_servers,
            linger_ms=run.linger_ms,
            compression_type=run.compression,
            **config,
        )

    @classmethod
    def can(cls, work: Work) -> bool:
        return super().can(work) and work.topics == 1

    @classmethod
    def about(cls) -> str:
        return aioproducer_build()

    async def start(self) -> None:
        self._producer.start()

    async def close(self) -> None:
        self._producer.close()

    async def stream(self, records: int) -> Counter[str]:
        send, headers = self._producer.send, self.payload.headers
        failures: Counter[str] = Counter()
        earlier: list[Delivery] = []
        given = self.payload.records(records)
        for start in range(0, records, CHUNK):
            chunk = []
            for _ in range(min(CHUNK, records - start)):
                topic, key, value = next(given)
                chunk.append(send(topic, value, key=key, headers=headers))
            _check(earlier, failures)
            earlier = chunk
        self._producer.flush()
        _check(earlier, failures)
        return failures


def _check(deliveries: list[Delivery], failures: Counter[str]) -> None:
    for delivery in deliveries:
        error = delivery.exception()
        if error is not None:
            failures[type(error).__name__] += 1
