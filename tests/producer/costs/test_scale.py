"""The cost of a pass of the Sender is independent of the number of partitions: counted, not timed.

Counted are the lines run in the producer's modules, in virtual time. ``python -m benchmarks scale`` measures the
same with a clock, on real sockets, up to 100,000 partitions.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import aioproducer
from aioproducer import KafkaProducer
from aioproducer.protocol.api_key import ApiKey
from tests.support.compiled import COMPILED
from tests.support.scripted_broker import ScriptedCluster, never
from tests.support.virtual_time import World, virtual

FEW, MANY = 10, 1000
PACKAGE = Path(aioproducer.__file__).parent
COUNTED = tuple(f"{PACKAGE / room}/" for room in ("producer", "net"))


class Lines:
    """How many of them were run."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(COUNTED):
            return None
        return self._step

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        self.count += event == "line"
        return self._step


async def cost_of_wakes(partitions: int, *, backlog: bool) -> int:
    """Of 20 records, each awaited; with ``backlog`` every partition of another node has a record waiting."""
    lines = Lines()
    async with ScriptedCluster(2) as cluster:
        cluster.create_topic("reached", assignments=[[0]] * partitions)
        cluster.create_topic("waiting", assignments=[[1]] * partitions)
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=0, batch_size=100) as producer:
            await asyncio.gather(producer.partitions_for("reached"), producer.partitions_for("waiting"))
            _ = await producer.send("reached", b"v", partition=0)
            if backlog:
                cluster.brokers[1].always(ApiKey.API_VERSIONS, never())
                for partition in range(partitions):
                    _ = producer.send("waiting", b"v", partition=partition)
                await asyncio.sleep(0.01)
            with lines.counting():
                for _ in range(20):
                    _ = await producer.send("reached", b"v", partition=0)
            await producer.close(0)
    return lines.count


@pytest.mark.parametrize("backlog", [False, True])
@virtual
async def test_a_wake_costs_the_same_whatever_the_number_of_partitions(world: World, backlog: bool) -> None:
    few = await cost_of_wakes(FEW, backlog=backlog)
    many = await cost_of_wakes(MANY, backlog=backlog)
    assert few > (50 if COMPILED else 500)  # else nothing was counted
    assert many < 1.1 * few
