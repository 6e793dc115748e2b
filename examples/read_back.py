"""Reads a partition: sends a few records, then reads them with the plain partition reader."""

from __future__ import annotations

import asyncio

from cluster import bootstrap_servers

from aioproducer import KafkaProducer
from aioproducer.reader import PartitionReader


async def main() -> None:
    async with bootstrap_servers() as servers:
        async with KafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(5):
                await producer.enqueue("greetings", b"hello %d" % number, partition=0)
        async with PartitionReader(servers, "greetings", 0) as reader:
            async for record in reader.read_to_end():
                print(f"{record.offset}: {record.value.decode() if record.value is not None else None}")


asyncio.run(main())
