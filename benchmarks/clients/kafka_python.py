"""kafka-python: ``send`` and the future of every record. It has a thread of its own and knows no event loop."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from typing import Any

from kafka import KafkaProducer

from benchmarks.clients.client import PythonClient
from benchmarks.run import Run

CHUNK = 10_000
"""Futures are looked at in chunks of so many, each while the next one is on its way."""


class KafkaPython(PythonClient):
    share = 8
    beats = False

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        config: dict[str, Any] = {"batch_size": run.batch_size} if run.batch_size else {}
        self._producer = KafkaProducer(
            bootstrap_servers=run.bootstrap_servers,
            acks="all",
            enable_idempotence=True,
            linger_ms=run.linger_ms,
            compression_type=None if run.compression == "none" else run.compression,
            **config,
        )

    @classmethod
    def about(cls) -> str:
        return version("kafka-python")

    async def start(self) -> None:
        """It has begun to connect when it was made; the warm-up waits for it."""

    async def close(self) -> None:
        self._producer.close()

    async def stream(self, records: int) -> Counter[str]:
        send, headers = self._producer.send, self.payload.headers or []
        failures: Counter[str] = Counter()
        earlier: list[Any] = []
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


def _check(futures: list[Any], failures: Counter[str]) -> None:
    for future in futures:
        try:
            future.get()
        except Exception as error:  # whatever it is: it is what became of this record
            failures[type(error).__name__] += 1
