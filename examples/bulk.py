"""Many records with one call: send_many reads as there is room, and accounts for every record."""

from __future__ import annotations

import asyncio

from cluster import bootstrap_servers

from aioproducer import KafkaProducer

RECORDS = 50_000


async def main() -> None:
    async with bootstrap_servers() as servers, KafkaProducer(bootstrap_servers=servers) as producer:
        result = await producer.send_many(
            "readings",
            (b"%d" % number for number in range(RECORDS)),
            keys=(b"sensor %d" % (number % 100) for number in range(RECORDS)),
        )
        print(f"{result.delivered} of {result.count} delivered")
        for (topic, partition), offsets in sorted(result.offsets.items()):
            print(f"{topic}-{partition}: {offsets.records} records, offsets {offsets.first} to {offsets.last}")
        result.raise_if_failed()


asyncio.run(main())
