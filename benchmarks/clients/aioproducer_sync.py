"""aioproducer's producer for threads: ``send`` and a look at every delivery."""

from __future__ import annotations

from collections import Counter
from typing import Any

from aioproducer.sync import Delivery, KafkaProducer
from benchmarks.clients.threaded import ThreadedClient
from benchmarks.harness.environment import aioproducer_build
from benchmarks.works.run import Run
from benchmarks.works.works import STREAM, Work


class Sync(ThreadedClient):
    """It has a thread of its own and an event loop there, and knows nothing of the one that it is measured in."""

    ways = (STREAM,)
    share = 4

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        config: dict[str, Any] = {"compression_type": run.compression}
        if run.batch_size:
            config["batch_size"] = run.batch_size
        self._producer = KafkaProducer(
            bootstrap_servers=run.bootstrap_servers,
            linger_ms=run.linger_ms,
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

    def _check(self, deliveries: list[Delivery], failures: Counter[str]) -> None:
        for delivery in deliveries:
            error = delivery.exception()
            if error is not None:
                failures[type(error).__name__] += 1
