"""A topic that exists for one run, and the broker's word on how many records are in it."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator

from aioproducer.admin import KafkaAdmin, NewTopic
from aioproducer.reader import PartitionReader


class Topic:
    """A topic with ``partitions`` partitions."""

    def __init__(self, bootstrap_servers: str, name: str, partitions: int) -> None:
        self.name = name
        self._bootstrap_servers = bootstrap_servers
        self._partitions = partitions

    async def records(self) -> int:
        """The sum of the partitions' end offsets."""
        total = 0
        for partition in range(self._partitions):
            async with PartitionReader(self._bootstrap_servers, self.name, partition) as reader:
                total += await reader.end_offset()
        return total


@contextlib.asynccontextmanager
async def fresh_topic(bootstrap_servers: str, partitions: int) -> AsyncIterator[Topic]:
    """Makes a topic with the broker's default replication, and deletes it."""
    name = f"aioproducer-benchmark-{uuid.uuid4().hex[:12]}"
    async with KafkaAdmin(bootstrap_servers=bootstrap_servers) as admin:
        await admin.create_topic(NewTopic(name, partitions))
        try:
            yield Topic(bootstrap_servers, name, partitions)
        finally:
            await admin.delete_topic(name)
