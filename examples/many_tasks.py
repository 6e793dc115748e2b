"""A thousand tasks, each waiting for its own records, share one producer and its batches."""

from __future__ import annotations

import asyncio

from cluster import bootstrap_servers

from aioproducer import KafkaProducer


async def customer(producer: KafkaProducer, number: int) -> int:
    key = b"customer-%d" % number
    for order in range(10):
        await producer.send("orders", b"order %d" % order, key=key)
    return 10


async def main() -> None:
    async with bootstrap_servers() as servers, KafkaProducer(bootstrap_servers=servers) as producer:
        orders = await asyncio.gather(*(customer(producer, number) for number in range(1000)))
        metrics = producer.metrics()
        print(f"{sum(orders)} orders acknowledged, in {metrics['batch-total']:.0f} batches")


asyncio.run(main())
