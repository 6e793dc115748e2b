"""The embedded broker on this machine, in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager

from aioproducer.broker import EmbeddedCluster
from benchmarks.harness.broker_process import broker_process

TOPIC = "near"


async def serve(window: int) -> None:
    """Prints the address, and ends with the standard input."""
    async with EmbeddedCluster() as cluster:
        cluster.create_topic(TOPIC, configs={"producer.state.batches.to.retain": max(window, 5)})
        print(cluster.bootstrap_servers, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def near_broker(window: int) -> AbstractAsyncContextManager[str]:
    """Its bootstrap server. ``TOPIC`` has one partition, whose window it announces (KIP-1269: at least 5)."""
    start = "import asyncio; from benchmarks.pipelining.near_broker import serve; asyncio.run(serve(int(sys.argv[1])))"
    return broker_process(start, str(window))
