"""The ways in which a producer learns that another has taken over its transactional.id; run against every broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from aioproducer import KafkaProducer, TopicPartition
from aioproducer.errors import ProducerFencedException, TransactionAbortableException

OLDER, NEWER = b"of the older", b"of the newer"

TakeOver = Callable[[], Awaitable[None]]
Way = Callable[[KafkaProducer, str, TakeOver], Awaitable[None]]


async def by_commit(older: KafkaProducer, topic: str, take_over: TakeOver) -> None:
    await older.begin_transaction()
    await older.send(topic, OLDER, partition=0)
    await take_over()
    await older.commit_transaction()


async def by_abort(older: KafkaProducer, topic: str, take_over: TakeOver) -> None:
    await older.begin_transaction()
    await older.send(topic, OLDER, partition=0)
    await take_over()
    await older.abort_transaction()


async def by_another_record(older: KafkaProducer, topic: str, take_over: TakeOver) -> None:
    await older.begin_transaction()
    await older.send(topic, OLDER, partition=0)
    await take_over()
    _ = older.send(topic, OLDER, partition=0)
    await older.commit_transaction()


async def by_another_partition(older: KafkaProducer, topic: str, take_over: TakeOver) -> None:
    await older.begin_transaction()
    await older.send(topic, OLDER, partition=0)
    await take_over()
    _ = older.send(topic, OLDER, partition=1)
    await older.commit_transaction()


async def by_records_on_their_way(older: KafkaProducer, topic: str, take_over: TakeOver) -> None:
    await older.begin_transaction()
    _ = [await older.enqueue(topic, OLDER, partition=i % 2) for i in range(5000)]
    await take_over()
    await older.commit_transaction()


async def by_the_next_transaction(older: KafkaProducer, topic: str, take_over: TakeOver) -> None:
    await take_over()
    await older.begin_transaction()
    _ = older.send(topic, OLDER, partition=0)
    await older.commit_transaction()


async def by_offsets(older: KafkaProducer, topic: str, take_over: TakeOver) -> None:
    await older.begin_transaction()
    await older.send(topic, OLDER, partition=0)
    await take_over()
    await older.send_offsets_to_transaction({TopicPartition(topic, 1): 1}, "g")


async def by_the_end_of_a_block(older: KafkaProducer, topic: str, take_over: TakeOver) -> None:
    async with older.transaction():
        await older.send(topic, OLDER, partition=0)
        await take_over()
        _ = older.send(topic, OLDER, partition=0)


WAYS: tuple[Way, ...] = (
    by_commit,
    by_abort,
    by_another_record,
    by_another_partition,
    by_records_on_their_way,
    by_the_next_transaction,
    by_offsets,
    by_the_end_of_a_block,
)


async def check_fenced(way: Way, older: KafkaProducer, newer: KafkaProducer, topic: str) -> None:
    """The newer producer takes over and commits NEWER; then every call of the older one reports that it is fenced.

    A broker that refuses its records does not know why; then the abort reports the reason.
    """

    async def take_over() -> None:
        await newer.init_transactions()
        async with newer.transaction():
            _ = newer.send(topic, NEWER, partition=0)

    message = r"A newer producer with the same transactional id has taken over; close this one"
    await older.init_transactions()
    with pytest.raises((ProducerFencedException, TransactionAbortableException)) as failure:
        await way(older, topic, take_over)
    if isinstance(failure.value, TransactionAbortableException):
        assert way is not by_the_end_of_a_block
        failure.match("must be aborted.*INVALID_PRODUCER_EPOCH.*or a newer producer has taken over")
        with pytest.raises(ProducerFencedException, match=message):
            await older.abort_transaction()
    else:
        failure.match(message)
    with pytest.raises(ProducerFencedException, match=message):
        _ = older.send(topic, OLDER, partition=0)
    for call in (
        older.enqueue(topic, OLDER, partition=0),
        older.init_transactions(),
        older.begin_transaction(),
        older.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, "g"),
        older.commit_transaction(),
        older.abort_transaction(),
    ):
        with pytest.raises(ProducerFencedException, match=message):
            await call
