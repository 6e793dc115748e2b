"""aioproducer: ``enqueue`` and a look at every delivery; and the same in other states of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, ClassVar

from aioproducer import Delivery, KafkaProducer, wait_all
from benchmarks.clients.chunks import CHUNK, Chunks
from benchmarks.clients.client import Latencies, Missing, PythonClient
from benchmarks.harness.environment import aioproducer_build, is_compiled
from benchmarks.harness.runtime import tune_collector
from benchmarks.works import ways
from benchmarks.works.run import Run
from benchmarks.works.works import PACED, STREAM, TASKS, Work


class Aioproducer(PythonClient):
    ways: ClassVar[Iterable[str]] = (STREAM, TASKS, PACED)
    config: ClassVar[dict[str, Any]] = {}
    """What it has besides the run's."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        config: dict[str, Any] = {**self.config, "compression_type": run.compression}
        if run.batch_size:
            config["batch_size"] = run.batch_size
        self.producer = KafkaProducer(
            bootstrap_servers=run.bootstrap_servers,
            linger_ms=run.linger_ms,
            **config,
        )

    @classmethod
    def about(cls) -> str:
        return aioproducer_build()

    async def start(self) -> None:
        await self.producer.start()

    async def close(self) -> None:
        await self.producer.close()

    async def stream(self, records: int) -> Counter[str]:
        enqueue, headers = self.producer.enqueue, self.payload.headers
        failures: Counter[str] = Counter()
        chunks: Chunks[Delivery] = Chunks(self.run)
        for given in self.payload.chunks(records, CHUNK):
            chunk = [await enqueue(topic, value, key=key, headers=headers) for topic, key, value in given]
            for due in chunks.due_after(chunk):
                await _check(due, failures)
        await self.producer.flush()
        for due in chunks.rest():
            await _check(due, failures)
        return failures

    def awaitable_send(self) -> Callable[[str, bytes], Awaitable[object]]:
        return self.producer.send

    async def paced(self, records: int) -> tuple[Counter[str], Latencies]:
        value, failed_before = self.payload.values[0], self.failed()
        send = partial(self.producer.send, self.topic, value)
        _ = await self.producer.partitions_for(self.topic)  # else records fill parked.memory before metadata comes

        def send_timed(acknowledged: Callable[[], None]) -> None:
            send().add_done_callback(lambda _: acknowledged())

        latencies = await ways.paced(send, send_timed, asyncio.sleep, records, self.run.rate)
        await self.producer.flush()
        return self.failures(failed_before), latencies

    def failed(self) -> int:
        """How many records have failed so far."""
        return int(self.producer.metrics()["record-error-total"])

    def failures(self, before: int) -> Counter[str]:
        failed = self.failed() - before
        return Counter({"record-error-total": failed} if failed else {})


class Unread(Aioproducer):
    """A delivery for every record, too, but successful ones are not read."""

    ways = (STREAM,)

    async def stream(self, records: int) -> Counter[str]:
        enqueue, headers = self.producer.enqueue, self.payload.headers
        before = self.failed()
        for topic, key, value in self.payload.records(records):
            _ = await enqueue(topic, value, key=key, headers=headers)
        await self.producer.flush()
        return self.failures(before)


class Tuned(Aioproducer):
    """With the setting of the garbage collector that ``docs/performance.md`` recommends."""

    ways = (STREAM,)

    @classmethod
    def can(cls, work: Work) -> bool:
        return super().can(work) and not work.batch_size and not work.keyed

    async def start(self) -> None:
        await super().start()
        tune_collector()


class Pure(Aioproducer):
    """Without the compiled modules."""

    ways = (STREAM,)
    share = 4

    @classmethod
    def can(cls, work: Work) -> bool:
        return super().can(work) and work.compression == "none" and not work.batch_size and not work.keyed

    @classmethod
    def about(cls) -> str:
        if is_compiled():
            raise Missing("the checkout has compiled modules in it: remove its .so files")
        return super().about()


class Window20(Aioproducer):
    """With a larger window, where the broker announces it (KIP-1269)."""

    ways = (STREAM,)
    config: ClassVar[dict[str, Any]] = {"max_in_flight_requests_per_connection": 20}

    @classmethod
    def can(cls, work: Work) -> bool:
        return super().can(work) and work.round_trip_ms > 0


async def _check(deliveries: list[Delivery], failures: Counter[str]) -> None:
    await wait_all(deliveries)
    for delivery in deliveries:
        error = delivery.exception()
        if error is not None:
            failures[type(error).__name__] += 1
