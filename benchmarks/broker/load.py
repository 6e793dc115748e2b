"""The loads of ``python -m benchmarks broker``, each in a process of its own. Each prints its figures as JSON."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.harness.runtime import loop_factory
from benchmarks.harness.statistics import quantiles

TOPIC = "load"
POLL_EVERY = 1_000
WARM_UP = 20_000


def produce(arguments: Sequence[str]) -> None:
    """Prints the records per second of confluent-kafka's plain producer."""
    from confluent_kafka import Producer

    servers, records, size = arguments[0], int(arguments[1]), int(arguments[2])
    where: dict[str, Any] = {"bootstrap.servers": servers} if servers else {"test.mock.num.brokers": 1}
    producer = Producer({**where, "queue.buffering.max.messages": 1_000_000, "log_level": 3})
    value = bytes(size)

    def send(count: int) -> None:
        produce, poll = producer.produce, producer.poll
        for number in range(count):
            while True:
                try:
                    produce(TOPIC, value)
                    break
                except BufferError:
                    poll(0.01)
            if number % POLL_EVERY == 0:
                poll(0)
        if (left := producer.flush(60)) != 0:
            raise RuntimeError(f"{left} of {count} records were not delivered within a minute")

    send(WARM_UP)
    begun = time.perf_counter()
    send(records)
    print(json.dumps(records / (time.perf_counter() - begun)))


def latency(arguments: Sequence[str]) -> None:
    """Prints p50, p99 and the most of small Produce requests in milliseconds."""
    servers, requests, per_s, loop = arguments[0], int(arguments[1]), int(arguments[2]), arguments[3]
    with asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
        figures = quantiles(runner.run(_paced(servers, requests, per_s)))
    print(json.dumps([1000 * figures[name] for name in ("p50", "p99", "max")]))


async def _paced(servers: str, requests: int, per_s: int) -> list[float]:
    """Seconds from when each request was due until its answer had come."""
    from aioproducer.protocol.framing import encode_request
    from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
    from benchmarks.harness.produce_frame import produce_frame

    host, _, port = servers.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def answer() -> bytes:
        return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))

    creating = MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True)
    writer.writelines(encode_request(creating, version=4, correlation_id=0, client_id="paced"))
    await answer()
    frame = produce_frame(TOPIC, bytes(100), acks=-1)
    due = time.perf_counter() + 0.1
    latencies: list[float] = []

    async def receive() -> None:
        for number in range(requests):
            await answer()
            latencies.append(time.perf_counter() - (due + number / per_s))

    receiving = asyncio.ensure_future(receive())
    for number in range(requests):
        wait = due + number / per_s - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        writer.write(frame)
    await receiving
    writer.close()
    return latencies
