"""confluent-kafka (librdkafka): ``produce`` with a delivery callback, its fastest way that tells every outcome.

It has threads of its own and knows no event loop; that its calls hold the loop up harms nobody here.
"""

from __future__ import annotations

from collections import Counter

from confluent_kafka import KafkaError, Message, Producer, libversion, version

from benchmarks.clients.client import LINGER_MS, StreamingClient

POLL_EVERY = 1_000
"""Records between two calls of ``poll(0)``, which runs the callbacks that are due."""


class ConfluentKafka(StreamingClient):
    name = "confluent-kafka"

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": LINGER_MS,
            }
        )

    @classmethod
    def about(cls) -> str:
        return f"{version()}, librdkafka {libversion()[0]}"

    async def start(self) -> None:
        """It has begun to connect when it was made; the warm-up waits for it."""

    async def close(self) -> None:
        self._producer.flush()

    async def stream(self, topic: str, value: bytes, records: int) -> Counter[str]:
        produce, poll = self._producer.produce, self._producer.poll
        failures: Counter[str] = Counter()
        ended = 0

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            nonlocal ended
            ended += 1
            if error is not None:
                failures[error.name()] += 1

        for number in range(records):
            while True:
                try:
                    produce(topic, value, on_delivery=on_delivery)
                    break
                except BufferError:  # its queue is full: wait for callbacks
                    poll(0.01)
            if number % POLL_EVERY == 0:
                poll(0)
        self._producer.flush()
        if ended != records:
            failures["no callback"] += records - ended
        return failures


CLIENT = ConfluentKafka
