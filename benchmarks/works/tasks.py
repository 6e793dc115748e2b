"""Many tasks, each of which awaits every record before it sends the next, as request handlers of a service do."""

from __future__ import annotations

import asyncio
from collections import Counter

from benchmarks.clients.client import AwaitingClient
from benchmarks.works.work import Work

COUNT = 1_000


async def tasks(client: AwaitingClient, topic: str, value: bytes, records: int) -> Counter[str]:
    send = client.awaitable_send()
    failures: Counter[str] = Counter()

    async def task(share: int) -> None:
        for _ in range(share):
            try:
                await send(topic, value)
            except Exception as error:  # whatever it is: it is what became of this record
                failures[type(error).__name__] += 1

    each, rest = divmod(records, COUNT)
    await asyncio.gather(*(task(each + (number < rest)) for number in range(COUNT)))
    return failures


TASKS = Work(
    name="tasks",
    title=f"{COUNT:,} tasks, each awaiting every record",
    needs=AwaitingClient,
    run=tasks,
    most_records=300_000,
    most_bytes=60_000_000,
)
