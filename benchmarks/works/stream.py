"""One caller sends records as fast as they are taken, with an awaitable (or a callback) for each."""

from __future__ import annotations

from collections import Counter

from benchmarks.clients.client import StreamingClient
from benchmarks.works.work import Work


async def stream(client: StreamingClient, topic: str, value: bytes, records: int) -> Counter[str]:
    return await client.stream(topic, value, records)


STREAM = Work(
    name="stream",
    title="one caller, an awaitable or callback for each record, every outcome checked",
    needs=StreamingClient,
    run=stream,
    most_records=1_000_000,
    most_bytes=300_000_000,
)
