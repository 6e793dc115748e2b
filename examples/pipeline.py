"""A stream through the producer: enqueue waits while memory is short, and every delivery is looked at."""

from __future__ import annotations

import asyncio
from collections import deque

from cluster import bootstrap_servers

from aioproducer import Delivery, KafkaProducer

RECORDS = 50_000


async def main() -> None:
    async with bootstrap_servers() as servers, KafkaProducer(bootstrap_servers=servers) as producer:
        under_way: deque[Delivery] = deque()
        delivered = 0
        for number in range(RECORDS):
            under_way.append(await producer.enqueue("readings", b"%d" % number))
            while under_way and under_way[0].done():
                under_way.popleft().result()  # raises what ended the delivery, if it failed
                delivered += 1
        for delivery in under_way:
            await delivery
            delivered += 1
        batches = producer.metrics()["batch-total"]
        print(f"{delivered} of {RECORDS} delivered in {batches:.0f} batches")


asyncio.run(main())
