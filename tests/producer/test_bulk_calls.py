from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer.errors import IllegalArgumentException, IllegalStateException
from tests.support.producing import make_producer


@pytest.mark.parametrize("topic", [None, "", b"t", 5])
async def test_a_topic_is_a_name(topic: Any) -> None:
    async with make_producer("127.0.0.1:1") as producer:
        with pytest.raises(IllegalArgumentException, match=r"the topic is .*; it must be the name of one"):
            await producer.send_many(topic, [b"v"])


async def test_columns_are_checked_before_anything_is_sent() -> None:
    async with make_producer("127.0.0.1:1") as producer:
        with pytest.raises(IllegalArgumentException, match="values has 2, keys has 1"):
            await producer.send_many("t", [b"1", b"2"], keys=[b"k"])
        with pytest.raises(IllegalArgumentException, match="values is a bytes; it must be a list"):
            await producer.send_many("t", b"one value")


async def test_only_where_the_producer_lives_and_while_it_does() -> None:
    producer = make_producer("127.0.0.1:1")
    with pytest.raises(IllegalStateException, match="not started"):
        await producer.send_many("t", [])
    await producer.start()

    def elsewhere() -> None:
        with pytest.raises(IllegalStateException, match="another event loop"):
            asyncio.run(producer.send_many("t", []))

    await asyncio.to_thread(elsewhere)
    await producer.close()
    with pytest.raises(IllegalStateException, match="closed"):
        await producer.send_many("t", [])
