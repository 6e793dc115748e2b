"""The cluster an example runs on: the one named on the command line, or an embedded broker."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aioproducer.broker import EmbeddedCluster


@asynccontextmanager
async def bootstrap_servers() -> AsyncIterator[str]:
    if len(sys.argv) > 1:
        yield sys.argv[1]
    else:
        async with EmbeddedCluster(configs={"num.partitions": 3}) as cluster:
            yield cluster.bootstrap_servers
