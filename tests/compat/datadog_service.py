"""A service that Datadog's ddtrace instruments: ``python datadog_service.py host:port before|after|auto``.

Prints its spans as JSON. It is instrumented before or after ``install()``, or as by ``ddtrace-run``, as the second
argument says.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

servers, order = sys.argv[1:]
os.environ.update(
    DD_KAFKA_PROPAGATION_ENABLED="true",
    DD_INSTRUMENTATION_TELEMETRY_ENABLED="false",
    DD_REMOTE_CONFIGURATION_ENABLED="false",
    DD_TRACE_AGENT_URL="http://127.0.0.1:1",  # spans are taken below; there is no agent
)

if order == "auto":
    import ddtrace.auto  # noqa: F401
from ddtrace import patch  # noqa: E402
from ddtrace.trace import Span, TraceFilter, tracer  # noqa: E402

spans: list[Span] = []


def take(_: TraceFilter, trace: list[Span]) -> None:
    spans.extend(trace)


tracer.configure(trace_processors=[type("Taken", (TraceFilter,), {"process_trace": take})()])
if order == "before":
    patch(aiokafka=True)

import aiokafka  # noqa: E402

from aioproducer.compat.aiokafka import AIOKafkaProducer, install  # noqa: E402

install()
if order == "after":
    patch(aiokafka=True)


async def main() -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers)
    assert isinstance(producer, AIOKafkaProducer)
    async with producer:
        await producer.send_and_wait("orders", b"there", b"k", partition=1)
        await (await producer.send("orders", b"anywhere"))
    consumer = aiokafka.AIOKafkaConsumer("orders", bootstrap_servers=servers, auto_offset_reset="earliest")
    async with consumer:
        for _ in range(2):
            await consumer.getone()


asyncio.run(main())
found = [
    {
        "name": span.name,
        "trace": str(span.trace_id),
        "span": str(span.span_id),
        "parent": str(span.parent_id),
        "tags": {**span.get_tags(), **span.get_metrics()},
    }
    for span in spans
]
sys.stdout.write(json.dumps(found))
