"""A service that OpenTelemetry instruments: ``python opentelemetry_service.py host:port before|after``.

Prints its spans as JSON. It is instrumented before or after ``install()``, as the second argument says.
"""

from __future__ import annotations

import asyncio
import json
import sys

import aiokafka
from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aioproducer.compat.aiokafka import AIOKafkaProducer, install

servers, order = sys.argv[1:]
spans = InMemorySpanExporter()
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(spans))

if order == "before":
    AIOKafkaInstrumentor().instrument(tracer_provider=provider)
install()
if order == "after":
    AIOKafkaInstrumentor().instrument(tracer_provider=provider)


async def main() -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, client_id="orders", value_serializer=str.encode)
    assert isinstance(producer, AIOKafkaProducer)
    async with producer:
        await producer.send_and_wait("orders", "keyed", key=b"k")
        await producer.send_and_wait("orders", "there", partition=1, headers=[("own", b"header")])
        await (await producer.send("orders", "anywhere"))
    consumer = aiokafka.AIOKafkaConsumer("orders", bootstrap_servers=servers, auto_offset_reset="earliest")
    async with consumer:
        for _ in range(3):
            await consumer.getone()
    AIOKafkaInstrumentor().uninstrument()
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers) as uninstrumented:
        await uninstrumented.send_and_wait("orders", b"untraced")


asyncio.run(main())
found = [
    {
        "name": span.name,
        "trace": f"{span.context.trace_id:032x}",
        "span": f"{span.context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else None,
        "attributes": dict(span.attributes or {}),
    }
    for span in spans.get_finished_spans()
]
sys.stdout.write(json.dumps(found))
