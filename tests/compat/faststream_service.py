"""A service of FastStream's on this package's producer: ``python faststream_service.py host:port``."""

from __future__ import annotations

import asyncio
import gc
import sys

from aioproducer.compat.aiokafka import install

install()

from faststream.kafka import KafkaBroker  # noqa: E402

from aioproducer import KafkaProducer  # noqa: E402


async def main(servers: str) -> None:
    broker = KafkaBroker(servers)
    bills: asyncio.Queue[str] = asyncio.Queue()

    @broker.subscriber("orders", auto_offset_reset="earliest")
    @broker.publisher("bills")
    async def bill(order: str) -> str:
        return f"bill of {order}"

    @broker.subscriber("bills", auto_offset_reset="earliest")
    async def take(text: str) -> None:
        await bills.put(text)

    async with broker:
        await broker.start()
        assert any(type(one) is KafkaProducer for one in gc.get_objects()), "it has another producer"
        await broker.publish("one", "orders", key=b"k", headers={"name": "value"})
        await broker.publish_batch("two", "three", topic="orders")
        for _ in range(3):
            await bills.get()


asyncio.run(main(sys.argv[1]))
