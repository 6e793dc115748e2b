"""aioproducer: ``enqueue``, and a look at every delivery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, version

from aioproducer import Delivery, KafkaProducer, wait_all
from aioproducer.producer import record_accumulator
from benchmarks.clients.client import LINGER_MS, AwaitingClient, StreamingClient

CHUNK = 10_000
"""Deliveries are looked at in chunks of so many, each while the next one is on its way."""


class Aioproducer(StreamingClient, AwaitingClient):
    name = "aioproducer"

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._producer = KafkaProducer(bootstrap_servers=bootstrap_servers, linger_ms=LINGER_MS)

    @classmethod
    def about(cls) -> str:
        try:
            number = version("aioproducer")
        except PackageNotFoundError:
            number = "not installed, run from the checkout"
        compiled = record_accumulator.__file__.endswith(tuple(EXTENSION_SUFFIXES))
        return f"{number}, {'compiled' if compiled else 'interpreted'}"

    async def start(self) -> None:
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.close()

    async def stream(self, topic: str, value: bytes, records: int) -> Counter[str]:
        enqueue = self._producer.enqueue
        failures: Counter[str] = Counter()
        earlier: list[Delivery] = []
        for start in range(0, records, CHUNK):
            chunk = [await enqueue(topic, value) for _ in range(min(CHUNK, records - start))]
            await _check(earlier, failures)
            earlier = chunk
        await self._producer.flush()
        await _check(earlier, failures)
        return failures

    def awaitable_send(self) -> Callable[[str, bytes], Awaitable[object]]:
        return self._producer.send


async def _check(deliveries: list[Delivery], failures: Counter[str]) -> None:
    await wait_all(deliveries)
    for delivery in deliveries:
        error = delivery.exception()
        if error is not None:
            failures[type(error).__name__] += 1


CLIENT = Aioproducer
