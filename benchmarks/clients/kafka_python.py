"""kafka-python: ``send`` and the future of every record. It has a thread of its own and knows no event loop."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from typing import Any, ClassVar

from kafka import KafkaProducer

from benchmarks.clients.threaded import ThreadedClient
from benchmarks.works.run import Run


class KafkaPython(ThreadedClient):
    share = 8
    no_headers: ClassVar[list[Any] | None] = []

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

    def _check(self, deliveries: list[Any], failures: Counter[str]) -> None:
        for future in deliveries:
            try:
                future.get()
            except Exception as error:  # whatever it is: it is what became of this record
                failures[type(error).__name__] += 1
