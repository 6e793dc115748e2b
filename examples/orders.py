"""One record, acknowledged; and what an error tells."""

from __future__ import annotations

import asyncio

from cluster import bootstrap_servers

from aioproducer import DeliveryError, KafkaProducer


async def main() -> None:
    async with bootstrap_servers() as servers, KafkaProducer(bootstrap_servers=servers) as producer:
        metadata = await producer.send("orders", b'{"total": 42}', key=b"customer-7", headers=[("source", b"web")])
        print(f"delivered to {metadata.topic}-{metadata.partition} at offset {metadata.offset}")

        try:
            await producer.send("orders", b"x" * 2_000_000)
        except DeliveryError as error:
            print(f"{type(error).__name__}, {error.outcome.value}: {error}")


asyncio.run(main())
