from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aioproducer.broker.broker_config import BrokerConfig, TopicConfig
from aioproducer.broker.delayed_fetch import DelayedFetch
from aioproducer.broker.partition_log import PartitionLog
from aioproducer.broker.request import Request
from aioproducer.broker.topic import Partition
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.primitives import Buffer


class Nowhere:
    """A channel that nothing may be sent to."""

    def send_response(self, parts: Sequence[Buffer]) -> None:
        raise AssertionError

    def no_operation(self) -> None:
        raise AssertionError

    def close(self, reason: str) -> None:
        raise AssertionError


class Waiting:
    """A delayed fetch of two partitions, and what became of it."""

    def __init__(self, max_wait_s: float = 1000, *, abandoned: bool = False) -> None:
        config = TopicConfig.of({}, BrokerConfig.of({}))
        self.partitions = [Partition("t", index, (0,), PartitionLog("t", config), leader=0) for index in range(2)]
        self.request = Request(RequestHeader(1, 12, 1, None), Nowhere())
        if abandoned:
            self.request.abandon()
        self.enough = False
        self.tried = 0
        self.completed = asyncio.Event()
        DelayedFetch(
            self.request,
            self.partitions,
            max_wait_s,
            try_complete=self._try_complete,
            complete=self.completed.set,
        )

    def _try_complete(self) -> bool:
        self.tried += 1
        return self.enough

    @property
    def watches(self) -> bool:
        return any(partition.watchers for partition in self.partitions)


async def test_waits_until_there_is_enough() -> None:
    waiting = Waiting()
    waiting.partitions[0].notify()
    assert waiting.watches
    waiting.enough = True
    waiting.partitions[1].notify()
    assert not waiting.watches
    waiting.partitions[0].notify()
    assert waiting.tried == 2
    assert not waiting.completed.is_set()


async def test_is_answered_when_its_time_is_up() -> None:
    waiting = Waiting(max_wait_s=0)
    await waiting.completed.wait()
    assert not waiting.watches
    assert waiting.tried == 0


async def test_forgets_a_client_that_is_gone() -> None:
    waiting = Waiting(max_wait_s=0)
    waiting.request.abandon()
    assert not waiting.watches
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.completed.is_set()


async def test_does_not_wait_for_one_that_was_gone_before() -> None:
    assert not Waiting(abandoned=True).watches
