"""The load of ``python -m benchmarks broker``, each in a process of its own; answers are JSON."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.harness.quantiles import quantiles

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
    factory = None
    if loop != "asyncio":
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        figures = quantiles(runner.run(_paced(servers, requests, per_s)))
    print(json.dumps([1000 * figures[name] for name in ("p50", "p99", "max")]))


async def _paced(servers: str, requests: int, per_s: int) -> list[float]:
    """Seconds from when each request was due until its answer had come."""
    from aioproducer.protocol.framing import encode_request
    from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
    from aioproducer.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
    from aioproducer.records.record_batch_header import encode_batch_header
    from aioproducer.records.record_writer import RecordWriter

    def frame(request: Any, version: int, correlation_id: int) -> bytes:
        return b"".join(encode_request(request, version=version, correlation_id=correlation_id, client_id="paced"))

    host, _, port = servers.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def answer() -> bytes:
        return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))

    writer.write(frame(MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=True), 4, 0))
    await answer()
    record = RecordWriter()
    record.append(0, 0, None, bytes(100), None)
    body, now = record.freeze(), int(time.time() * 1000)
    batch = encode_batch_header(body, count=1, base_timestamp=now, max_timestamp=now) + body
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(TOPIC, partition_data=[PartitionProduceData(0, batch)])]
    )
    frames = [frame(request, 9, number) for number in range(requests)]
    due = time.perf_counter() + 0.1
    latencies: list[float] = []

    async def receive() -> None:
        for number in range(requests):
            await answer()
            latencies.append(time.perf_counter() - (due + number / per_s))

    receiving = asyncio.ensure_future(receive())
    for number, one in enumerate(frames):
        wait = due + number / per_s - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        writer.write(one)
    await receiving
    writer.close()
    return latencies
