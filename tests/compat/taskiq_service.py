"""A service of taskiq's on this package's producer: ``python taskiq_service.py host:port``."""

from __future__ import annotations

import asyncio
import gc
import sys

from aioproducer.compat.aiokafka import install

install()

from kafka.admin import NewTopic  # noqa: E402
from taskiq_aio_kafka import AioKafkaBroker  # noqa: E402

from aioproducer import KafkaProducer  # noqa: E402


async def main(servers: str) -> None:
    broker = AioKafkaBroker(servers, kafka_topic=NewTopic(name="tasks", num_partitions=1, replication_factor=1))

    @broker.task("add")
    async def add(first: int, second: int) -> int:
        return first + second

    await broker.startup()
    assert any(type(one) is KafkaProducer for one in gc.get_objects()), "it has another producer"
    for number in range(3):
        await add.kiq(number, second=1)
    await broker.shutdown()


asyncio.run(main(sys.argv[1]))
