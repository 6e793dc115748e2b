"""The processes beside that of ``connections``: the broker, and the address that storms it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from urllib.parse import urlsplit

from aioproducer.broker import EmbeddedCluster
from benchmarks.worker import loop_factory

TOPIC = "t"
STORMY, QUOTA = "127.0.0.2", 10
"""Who storms, and how many connections a second it may make."""

RATE = 1_000
"""Connections a second that it makes."""


def serve() -> None:
    """A broker, until the standard input ends; says its port and its process."""
    with asyncio.Runner(loop_factory=loop_factory(sys.argv[1])) as runner:
        runner.run(_serve())


async def _serve() -> None:
    async with EmbeddedCluster(configs={"log.retention.bytes": 1 << 20}) as cluster:
        cluster.create_topic(TOPIC)
        cluster.alter_client_quotas({"ip": STORMY}, {"connection_creation_rate": QUOTA})
        print(urlsplit(f"//{cluster.bootstrap_servers}").port, os.getpid(), flush=True)
        await asyncio.to_thread(sys.stdin.read)


def storm() -> None:
    """Connects to a port for so many seconds; says how many connections were made, and how many of them closed."""
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    asyncio.run(_storm(port, seconds))


async def _storm(port: int, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    made = closed = 0

    async def connect() -> None:
        nonlocal made, closed
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(STORMY, 0))
        made += 1
        try:
            await reader.read(1)  # nothing is ever sent: it ends when the broker closes it
            closed += 1
        except ConnectionError:
            closed += 1
        finally:
            writer.close()

    begin, started = loop.time(), 0
    tasks: set[asyncio.Task[None]] = set()
    while (passed := loop.time() - begin) < seconds:
        while started < passed * RATE:
            task = loop.create_task(connect())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            started += 1
        await asyncio.sleep(0.005)
    print(made, closed, flush=True)
    for task in tuple(tasks):
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)
