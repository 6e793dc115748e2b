"""The processes beside that of ``connections``: the broker, and the address that storms it."""

from __future__ import annotations

import asyncio
import os
import selectors
import socket
import sys
import time
from urllib.parse import urlsplit

from aioproducer.broker import EmbeddedCluster
from benchmarks.worker import loop_factory

TOPIC = "t"
STORMY, QUOTA = "127.0.0.2", 10
"""Who storms, and how many connections a second it may make."""

STORM = 1_000
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
    """Connects to a port for so many seconds; says how many connections were made, and how many of them closed.

    Plain sockets: this process takes as little of the machine as it can.
    """
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    begin, made, closed = time.perf_counter(), 0, 0
    with selectors.DefaultSelector() as selector:
        while (passed := time.perf_counter() - begin) < seconds:
            while made < passed * STORM:
                connection = socket.socket()
                connection.setblocking(False)
                connection.bind((STORMY, 0))
                connection.connect_ex(("127.0.0.1", port))
                selector.register(connection, selectors.EVENT_READ)
                made += 1
            for key, _ in selector.select(0.002):  # nothing is ever sent: the broker has closed it
                selector.unregister(key.fileobj)
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()
                closed += 1
    print(made, closed, flush=True)
