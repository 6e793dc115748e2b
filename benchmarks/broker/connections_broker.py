"""The broker's process of ``connections``."""

from __future__ import annotations

import asyncio
import os
import sys
from urllib.parse import urlsplit

from aioproducer.broker import EmbeddedCluster
from benchmarks.broker.connection_storm import STORMY
from benchmarks.harness.runtime import loop_factory

TOPIC = "t"
QUOTA = 10
"""How many connections a second the stormy address may make."""


def main() -> None:
    """A broker, until the standard input ends; says its port and its process."""
    with asyncio.Runner(loop_factory=loop_factory(sys.argv[1])) as runner:
        runner.run(_serve())


async def _serve() -> None:
    async with EmbeddedCluster(configs={"log.retention.bytes": 1 << 20}) as cluster:
        cluster.create_topic(TOPIC)
        cluster.alter_client_quotas({"ip": STORMY}, {"connection_creation_rate": QUOTA})
        print(urlsplit(f"//{cluster.bootstrap_servers}").port, os.getpid(), flush=True)
        await asyncio.to_thread(sys.stdin.read)
