"""confluent-kafka (librdkafka): ``produce`` with a delivery callback, its fastest way to learn every outcome.

It has threads of its own and knows no event loop; that its calls hold up the loop does no harm here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, Message, Producer, libversion, version

from benchmarks.clients.client import Latencies, PythonClient
from benchmarks.works import ways
from benchmarks.works.run import Run
from benchmarks.works.works import PACED, STREAM, TASKS, Work

POLL_EVERY = 1_000
"""Records between two calls of ``poll(0)``, which runs the callbacks that are due."""


def config_of(run: Run) -> dict[str, object]:
    """librdkafka's batches are of 1 MB by default, so there is nothing to be said of larger ones than Kafka's."""
    return {
        "bootstrap.servers": run.bootstrap_servers,
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": run.linger_ms,
        "compression.type": run.compression,
    }


class ConfluentKafka(PythonClient):
    ways = (STREAM, TASKS, PACED)
    beats = False

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._producer = Producer(config_of(run))

    @classmethod
    def can(cls, work: Work) -> bool:
        """No tasks but one: it has nothing to await."""
        return super().can(work) and work.tasks <= 1

    @classmethod
    def about(cls) -> str:
        return f"{version()}, librdkafka {libversion()[0]}"

    async def start(self) -> None:
        """It has begun to connect when it was made; the warm-up waits for it."""

    async def close(self) -> None:
        self._producer.flush()

    async def stream(self, records: int) -> Counter[str]:
        produce, poll = self._producer.produce, self._producer.poll
        headers: Any = self.payload.headers
        failures: Counter[str] = Counter()
        ended = 0

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            nonlocal ended
            ended += 1
            if error is not None:
                failures[error.name()] += 1

        for number, (topic, key, value) in enumerate(self.payload.records(records)):
            while True:
                try:
                    produce(topic, value, key, on_delivery=on_delivery, headers=headers)
                    break
                except BufferError:  # its queue is full: wait for callbacks
                    poll(0.01)
            if number % POLL_EVERY == 0:
                poll(0)
        self._producer.flush()
        if ended != records:
            failures["no callback"] += records - ended
        return failures

    async def tasks(self, records: int) -> tuple[Counter[str], Latencies]:
        """One task: it sends a record and polls until its callback has come."""
        produce, poll, topic, value = self._producer.produce, self._producer.poll, self.topic, self.payload.values[0]
        failures: Counter[str] = Counter()
        latencies = []
        acknowledged = False

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            nonlocal acknowledged
            acknowledged = True
            if error is not None:
                failures[error.name()] += 1

        for _ in range(records):
            began = time.perf_counter()
            acknowledged = False
            produce(topic, value, on_delivery=on_delivery)
            while not acknowledged:
                poll(1.0)
            latencies.append(time.perf_counter() - began)
        return failures, latencies

    async def paced(self, records: int) -> tuple[Counter[str], Latencies]:
        produce, poll, topic, value = self._producer.produce, self._producer.poll, self.topic, self.payload.values[0]
        failures: Counter[str] = Counter()

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures[error.name()] += 1

        def send() -> None:
            produce(topic, value, on_delivery=on_delivery)

        def send_timed(acknowledged: Callable[[], None]) -> None:
            def on_timed_delivery(error: KafkaError | None, message: Message) -> None:
                acknowledged()
                on_delivery(error, message)

            produce(topic, value, on_delivery=on_timed_delivery)

        async def pause(seconds: float) -> None:
            poll(seconds)

        latencies = await ways.paced(send, send_timed, pause, records, self.run.rate)
        self._producer.flush()
        return failures, latencies
