"""A broker at the far end of a slow line, in a process of its own.

The line's delays must be right to a part of a millisecond, and nothing that the producer does may hold it up. Event
loops round their timers: uvloop's, and asyncio's over epoll, to milliseconds. Over ``select`` they are right to some
50 µs, so that is what this process runs on.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import socket
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from statistics import median

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.slow_line import SlowLine
from benchmarks.harness.processes import broker_process

TOPIC = "far"
PINGS = 10

_START = "from benchmarks.pipelining.far_broker import main; main(*sys.argv[1:])"


@dataclass(frozen=True)
class FarBroker:
    """``ping_ms`` is the round trip of a byte over such a line, the median of PINGS, one after another."""

    bootstrap_servers: str
    ping_ms: float


def main(round_trip_ms: str, partitions: str, window: str) -> None:
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(serve(float(round_trip_ms) / 2000, int(partitions), int(window)))


async def serve(one_way: float, partitions: int, window: int) -> None:
    """Prints the addresses of the broker and of an echo, both behind the line; ends with the standard input."""
    async with (
        SlowLine(one_way) as line,
        SlowLine(one_way) as echo_line,
        EmbeddedCluster(advertised={0: line.address}) as cluster,
        await asyncio.start_server(_echo, "127.0.0.1", 0) as echo,
    ):
        line.leads_to(*cluster.listener(0))
        echo_line.leads_to(*echo.sockets[0].getsockname()[:2])
        cluster.create_topic(TOPIC, partitions, configs={"producer.state.batches.to.retain": max(window, 5)})
        print(cluster.bootstrap_servers, "{}:{}".format(*echo_line.address), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.closing(writer):
        while data := await reader.read(1):
            writer.write(data)


@contextlib.asynccontextmanager
async def far_broker(round_trip_ms: float, *, window: int, partitions: int = 1) -> AsyncIterator[FarBroker]:
    """``TOPIC`` has ``partitions`` partitions, and the broker announces this window for each (KIP-1269: at least 5)."""
    async with broker_process(_START, str(round_trip_ms), str(partitions), str(window)) as said:
        bootstrap_servers, echo = said.split()
        yield FarBroker(bootstrap_servers, await asyncio.to_thread(_ping_ms, echo))


def _ping_ms(address: str) -> float:
    host, _, port = address.rpartition(":")
    pings = []
    with socket.create_connection((host, int(port))) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(PINGS):
            begun = time.perf_counter()
            sock.sendall(b".")
            sock.recv(1)
            pings.append((time.perf_counter() - begun) * 1000)
    return median(pings)
