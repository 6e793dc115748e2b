"""``python -m benchmarks connections``: what many connections cost the embedded broker, and whom a storm of them hurts.

A broker in a process of its own, and 100 connections that produce small batches at a steady rate: alone, beside 2,000
connections that do nothing, and beside one address that makes 1,000 connections a second, a hundred times its quota.
The three take turns, in each round with another broker; what is compared are the medians of their 99th percentiles. A
latency counts from when a request was due, so a broker that stands still cannot hide it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import socket
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.broker.connection_storm import PER_S
from benchmarks.broker.connections_broker import QUOTA, TOPIC
from benchmarks.harness import command
from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.environment import Environment
from benchmarks.harness.machine_cpu import MachineCpu
from benchmarks.harness.processes import broker_process, python_command
from benchmarks.harness.produce_frame import produce_frame
from benchmarks.harness.statistics import quantiles

IDLE, BUSY = 2_000, 100
REQUESTS = 500
"""A second, by all busy connections together."""

HARM = 1.5
"""So many times larger the 99th percentile of the busy ones may be."""

ADDRESSES = [f"127.0.0.{number}" for number in range(3, 13)]


@dataclass(frozen=True)
class Storm:
    """What became of its connections."""

    made: int
    closed: int


@dataclass(frozen=True)
class Report:
    """Milliseconds by name of the quantile, one of each for each round; bytes of the broker for an idle connection."""

    environment: Environment
    seconds: int
    quiet: list[dict[str, float]]
    beside_idle: list[dict[str, float]]
    beside_storm: list[dict[str, float]]
    idle_bytes: list[int]
    storms: list[Storm]

    def verdicts(self) -> list[Verdict]:
        quiet = _p99(self.quiet)
        return [
            Verdict(f"p99 beside {name} ÷ quiet ≤ {HARM}", f"{_p99(rounds) / quiet:.2f}", _p99(rounds) <= HARM * quiet)
            for name, rounds in (("idle connections", self.beside_idle), ("a storm", self.beside_storm))
        ]

    def problems(self) -> list[str]:
        wrong = [verdict.problem for verdict in self.verdicts() if not verdict.met]
        for storm in self.storms:
            if storm.made < 0.8 * PER_S * self.seconds:
                wrong.append(f"that was no storm: {storm.made} connections in {self.seconds} s")
            # What the quota lets in at first is what may come in all of its windows.
            if (kept := storm.made - storm.closed) > QUOTA * (self.seconds + 12) + PER_S:
                wrong.append(f"{kept} connections of the storm were not closed, with a quota of {QUOTA} a second")
        return wrong

    def tables(self) -> list[str]:
        """All figures, as lines of Markdown."""
        bytes_each = statistics.median(self.idle_bytes)
        lines = [
            f"{BUSY} connections, {REQUESTS} requests a second of one record each; medians of {len(self.quiet)} rounds "
            f"of {self.seconds} s.",
            "",
            "| beside them | p50 | p99 | p99 ÷ quiet |",
            "|---|---:|---:|---:|",
        ]
        for name, rounds in (
            ("nothing", self.quiet),
            (f"{IDLE:,} idle connections, {bytes_each / 1024:.1f} KiB of the broker each", self.beside_idle),
            (f"{PER_S:,} connections a second from an address that may make {QUOTA}", self.beside_storm),
        ):
            p50 = statistics.median(found["p50"] for found in rounds)
            lines.append(f"| {name} | {p50:.2f} ms | {_p99(rounds):.2f} ms | {_p99(rounds) / _p99(self.quiet):.2f} |")
        return [*lines, "", *Verdict.table(self.verdicts())]

    def markdown(self) -> str:
        return command.page(self.environment, self.tables(), self.problems())


def _p99(rounds: list[dict[str, float]]) -> float:
    return statistics.median(found["p99"] for found in rounds)


class Busy:
    """Connections that produce at a steady rate, each a request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._frame = produce_frame(TOPIC, b"x" * 100)
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __aenter__(self) -> Busy:
        for number in range(BUSY):
            local = ADDRESSES[number % len(ADDRESSES)], 0
            self._streams.append(await asyncio.open_connection("127.0.0.1", self._port, local_addr=local))
        return self

    async def __aexit__(self, *_: object) -> None:
        for _reader, writer in self._streams:
            writer.close()

    async def latencies(self, seconds: float) -> list[float]:
        """Milliseconds from when each request was due to its answer."""
        found: list[float] = []
        begin, every = time.perf_counter() + 0.1, BUSY / REQUESTS  # uvloop's own clock has whole milliseconds

        async def run(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            due = begin + every * number / BUSY
            while due < begin + seconds:
                await asyncio.sleep(due - time.perf_counter())
                writer.write(self._frame)
                await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                found.append((time.perf_counter() - due) * 1000)
                due += every

        async with asyncio.TaskGroup() as group:
            for number, streams in enumerate(self._streams):
                group.create_task(run(number, *streams))
        return found


@contextlib.asynccontextmanager
async def idle_connections(port: int) -> AsyncIterator[None]:
    """They do nothing."""
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        for _ in range(IDLE):
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            await loop.sock_connect(connection, ("127.0.0.1", port))
        await asyncio.sleep(1)  # until the broker has accepted the last of them
        yield


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


async def begin_storm(port: int, seconds: float) -> asyncio.subprocess.Process:
    """Connections at a steady rate from one address, by a process of its own; returns when the first of them is made:
    what it takes to start Python is no part of the storm."""
    statement = "from benchmarks.broker.connection_storm import main; main()"
    process = await asyncio.create_subprocess_exec(
        *python_command(statement, str(port), str(seconds)), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    if await process.stdout.readline() != b"begun\n":
        raise RuntimeError(f"the storm ended with status {await process.wait()}")
    return process


async def end_of_storm(process: asyncio.subprocess.Process) -> Storm:
    said, _ = await process.communicate()
    made, closed = map(int, said.split())
    return Storm(made, closed)


async def measure(options: argparse.Namespace, progress: Callable[[str], object]) -> Report:
    environment, cpu = Environment.now(loop=options.loop, broker="embedded, in a process of its own"), MachineCpu()
    report = Report(environment, options.seconds, [], [], [], [], [])
    for round_ in range(1, options.rounds + 1):
        await _round(options, report)
        last = report.quiet[-1], report.beside_idle[-1], report.beside_storm[-1]
        progress(f"round {round_}: p99 " + ", ".join(f"{found['p99']:.2f} ms" for found in last))
    return dataclasses.replace(report, environment=dataclasses.replace(environment, others=cpu.others()))


async def _round(options: argparse.Namespace, report: Report) -> None:
    """With a broker that has had no connections before: memory that it has once been given is not counted again."""
    async with broker_process("from benchmarks.broker.connections_broker import main; main()", options.loop) as said:
        port, pid = map(int, said.split())
        async with Busy(port) as busy:
            await busy.latencies(2)
            report.quiet.append(quantiles(await busy.latencies(options.seconds)))
            before = resident(pid)
            async with idle_connections(port):
                report.idle_bytes.append((resident(pid) - before) // IDLE)
                report.beside_idle.append(quantiles(await busy.latencies(options.seconds)))
            stormy = await begin_storm(port, options.seconds + 0.5)
            report.beside_storm.append(quantiles(await busy.latencies(options.seconds)))
            report.storms.append(await end_of_storm(stormy))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks connections",
        description="Measures what connections cost the embedded broker, and whom a storm of them hurts.",
        epilog=f"Exit status 0: the p99 is at most {HARM} times that of quiet; 1: it is more.",
    )
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="%(default)s, of which medians count")
    parser.add_argument("--seconds", type=positive, default=4, metavar="S", help="of each measurement (%(default)s)")
    command.add_options(parser)
    return command.report(measure, parser.parse_args(arguments))
