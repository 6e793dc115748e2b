"""Topics with something in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aioproducer import KafkaProducer
from aioproducer.testing.threaded_cluster import ThreadedCluster


def fill(cluster: ThreadedCluster, topic: str, *counts: int, first: int = 0, **config: Any) -> None:
    """So many records in each partition: values ``p:n``, keys ``n``, timestamps 1000 + n, from n = ``first`` on."""
    servers = cluster.bootstrap_servers

    async def send() -> None:
        async with KafkaProducer(bootstrap_servers=servers, **config) as producer:
            for partition, count in enumerate(counts):
                for number in range(first, first + count):
                    _ = await producer.enqueue(
                        topic,
                        b"%d:%d" % (partition, number),
                        key=b"%d" % number,
                        partition=partition,
                        timestamp_ms=1000 + number,
                    )
            await producer.flush()

    cluster.run(send())


def transactions(cluster: ThreadedCluster, topic: str, *ends: str, partition: int = 0) -> None:
    """For each end ("commit", "abort") a transaction of two records: values ``end n``."""
    servers = cluster.bootstrap_servers

    async def send() -> None:
        async with KafkaProducer(bootstrap_servers=servers, transactional_id="t") as producer:
            await producer.init_transactions()
            for number, end in enumerate(ends):
                await producer.begin_transaction()
                for _ in range(2):
                    await (await producer.enqueue(topic, f"{end} {number}".encode(), partition=partition))
                await (producer.commit_transaction() if end == "commit" else producer.abort_transaction())

    cluster.run(send())


@contextmanager
def open_transaction(cluster: ThreadedCluster, topic: str) -> Iterator[None]:
    """A transaction of one record in partition 0, under way."""
    servers = cluster.bootstrap_servers

    async def begin() -> KafkaProducer:
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id="open")
        await producer.start()
        await producer.init_transactions()
        await producer.begin_transaction()
        await (await producer.enqueue(topic, b"open", partition=0))
        return producer

    producer = cluster.run(begin())
    try:
        yield
    finally:
        cluster.run(producer.close())
