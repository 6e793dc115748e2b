"""Brokers behind lines: Kafka, and the embedded broker for windows that no released Kafka has (KIP-1269)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from functools import partial

from aioproducer.broker import EmbeddedCluster
from aioproducer.testing.kafka.apache_kafka import ApacheKafka
from benchmarks.clients import WINDOW_20
from benchmarks.comparison.broker import Broker, BrokerOf
from benchmarks.harness.metered_line import metered_line
from benchmarks.harness.processes import broker_process
from benchmarks.harness.produce_frame import produce_frame
from benchmarks.harness.usage import cpu_seconds_of

WINDOW = 20
MEGABYTES = 400
"""Sent to learn what a line carries."""

_START = "from benchmarks.comparison.far_brokers import main; main(*sys.argv[1:])"


def main(host: str, port: str) -> None:
    asyncio.run(_serve(host, int(port)))


async def _serve(host: str, port: int) -> None:
    """Prints where the line must lead, ends with the standard input."""
    configs = {"log.producer.state.batches.to.retain": WINDOW}
    async with EmbeddedCluster(advertised={0: (host, port)}, configs=configs) as cluster:
        print("{}:{}".format(*cluster.listener(0)), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


@contextlib.asynccontextmanager
async def embedded() -> AsyncIterator[Broker]:
    """It announces WINDOW for every partition."""
    async with metered_line() as line, broker_process(_START, line.host, str(line.port)) as address:
        await line.leads_to(address)
        yield Broker(line.address, line=line)


@contextlib.asynccontextmanager
async def kafka() -> AsyncIterator[Broker]:
    """One node that is reached over the line alone."""
    async with (
        metered_line() as line,
        ApacheKafka(performance=True, configs={"advertised.listeners": f"PLAINTEXT://{line.address}"}) as node,
    ):
        await line.leads_to(node.bootstrap_servers)
        yield Broker(line.address, partial(cpu_seconds_of, node.pid(1)), line)


@contextlib.asynccontextmanager
async def far_brokers(clients: Sequence[str]) -> AsyncIterator[BrokerOf]:
    """Kafka; for the client with the larger window the embedded broker."""
    async with contextlib.AsyncExitStack() as stack:
        wide, others = WINDOW_20 in clients, set(clients) != {WINDOW_20}
        there: dict[bool, Broker] = {}
        if wide:
            there[True] = await stack.enter_async_context(embedded())
        if others:
            there[False] = await stack.enter_async_context(kafka())
        yield lambda client: there[client == WINDOW_20]


async def carried(round_trip_ms: int) -> float:
    """Megabytes a second of Produce requests that such a line carries to somebody who only reads them."""
    frame = produce_frame("any", bytes(1_000_000))
    async with metered_line() as line:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            await line.leads_to("{}:{}".format(*listener.getsockname()))
            await line.set_round_trip(round_trip_ms)
            seconds = await asyncio.to_thread(_send, frame, round_trip_ms / 2000, line.host, line.port, listener)
    return len(frame) * MEGABYTES / 1e6 / seconds


def _send(frame: bytes, one_way: float, host: str, port: int, listener: socket.socket) -> float:
    with socket.create_connection((host, port)) as sender, listener.accept()[0] as receiver:
        reader = threading.Thread(target=_read, args=(receiver,))
        begun = time.perf_counter()
        reader.start()
        for _ in range(MEGABYTES):
            sender.sendall(frame)
        sender.shutdown(socket.SHUT_WR)
        reader.join()
        return time.perf_counter() - begun - one_way


def _read(receiver: socket.socket) -> None:
    buffer = bytearray(1 << 20)
    while receiver.recv_into(buffer):
        pass
