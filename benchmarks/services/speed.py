"""Counts the requests that one process of a FastAPI service answers per second, on each client in turn."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from benchmarks.harness.arguments import positive
from benchmarks.harness.command import Verdict
from benchmarks.harness.statistics import Spread, quantiles, ratios
from benchmarks.services.clients import CLIENTS, FLOOR, REFERENCE
from benchmarks.services.http_load import HttpLoad
from benchmarks.services.process import ServiceFailed, free_port, service, service_on

TARGET = 1.2
"""Times the requests per second of the better of the others."""

PATIENCE = 30.0
"""Seconds for the first answers, and for the last."""

WARM_UP = 1.0
"""Seconds of load from all clients before the clocks start."""

Kind = tuple[int, str]
"""Records that come of a request, and how the service's garbage collector is set."""


@dataclass(frozen=True)
class Run:
    """One client's turn. ``cpu_us`` is the service's CPU time per request."""

    records: int
    gc: str
    client: str
    round: int
    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    problems: list[str]


@dataclass(frozen=True)
class Speed:
    """All turns; a ratio is of the same round."""

    clients: int
    seconds: int
    runs: Sequence[Run]

    def verdicts(self) -> Iterator[Verdict]:
        """For each kind of service: aioproducer beside the better of the others."""
        for kind in dict.fromkeys((run.records, run.gc) for run in self.runs):
            others = [client for client in CLIENTS if client not in (REFERENCE, FLOOR)]
            measured = [(client, ratio) for client in others if (ratio := self._ratio(kind, REFERENCE, client))]
            if measured:
                name, ratio = min(measured, key=lambda one: one[1].median)
                bound = self._ratio(kind, FLOOR, name)
                most = f"; a client that costs nothing would have {bound.median:.2f}" if bound else ""
                yield Verdict(
                    f"{kind[0]} a request, GC {kind[1]}: requests/s ÷ those on {name} ≥ {TARGET:g}",
                    f"{ratio}{most}",
                    ratio.median >= TARGET,
                )

    def problems(self) -> Iterator[str]:
        for run in self.runs:
            yield from (f"{run.client}, round {run.round}: {problem}" for problem in run.problems)
        yield from (verdict.problem for verdict in self.verdicts() if not verdict.met)

    def markdown(self) -> Iterator[str]:
        yield f"{self.clients:,} clients at a time, {self.seconds} s a run; medians, ratios with the least and most."
        yield ""
        yield "| records a request | GC | service on | requests/s | p50 | p99 | CPU a request | aioproducer ÷ it |"
        yield "|---:|---|---|---:|---:|---:|---:|---:|"
        for records, gc, client in dict.fromkeys((run.records, run.gc, run.client) for run in self.runs):
            runs = [run for run in self.runs if (run.records, run.gc, run.client) == (records, gc, client)]
            speed, p50, p99, cpu = (
                median(getattr(run, name) for run in runs) for name in ("requests_per_s", "p50_ms", "p99_ms", "cpu_us")
            )
            ratio = "" if client == REFERENCE else str(self._ratio((records, gc), REFERENCE, client) or "")
            yield (
                f"| {records} | {gc} | {client} | {speed:,.0f} | {p50:.0f} ms | {p99:.0f} ms | {cpu:.0f} µs | {ratio} |"
            )
        yield ""
        yield from Verdict.table(list(self.verdicts()))

    def _ratio(self, kind: Kind, client: str, other: str) -> Spread | None:
        """How many times the requests of ``other`` the service on ``client`` answers."""
        return ratios(self._by_round(kind, client), self._by_round(kind, other))

    def _by_round(self, kind: Kind, client: str) -> dict[int, float]:
        return {
            run.round: run.requests_per_s for run in self.runs if (run.records, run.gc, run.client) == (*kind, client)
        }


def add_options(parser: argparse.ArgumentParser) -> None:
    """The load on a service, its rounds, and the Kafka that it uses."""
    parser.add_argument("--rounds", type=positive, default=5, metavar="N", help="%(default)s, of which medians count")
    parser.add_argument("--seconds", type=positive, default=5, metavar="S", help="of each run (%(default)s)")
    parser.add_argument("--clients", type=positive, default=1000, metavar="N", help="that ask at a time (%(default)s)")
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT[,...]", help="instead of starting Kafka here")


def order_of(records: int, number: int) -> bytes:
    """A body that makes this number of records."""
    lines = [{"article": f"a{line}", "count": line} for line in range(1, records)]
    return json.dumps({"id": str(number), "customer": f"c{number % 50}", "total": 9.5, "lines": lines}).encode()


async def measure(
    kind: Kind,
    client: str,
    round_: int,
    servers: str,
    clients: int,
    seconds: float,
    *,
    look: Callable[[int], Awaitable[object]] | None = None,
    patience: float = PATIENCE,
    rate: float | None = None,
) -> Run:
    """One client's turn; ``look(port)`` is awaited at the end of the time that counts, while requests still come.

    The HTTP clients together send ``rate`` requests per second, or as many as they can.
    """
    port = free_port()
    records, gc = kind
    async with service(service_on(client, port, servers, gc), port, {}) as running:
        period = clients / rate if rate else 0.0
        load = HttpLoad(port, "/orders", partial(order_of, records), clients, together=True, period=period)
        async with load.flowing(patience=patience):
            try:
                async with asyncio.timeout(patience):
                    await load.all_answered()
            except TimeoutError:
                raise ServiceFailed(f"a service on {client} has not answered each client in {patience:g} s") from None
            await asyncio.sleep(min(WARM_UP, seconds))
            before, began, cpu = len(load.replies), time.perf_counter(), running.cpu_seconds()
            await asyncio.sleep(seconds)
            took, cpu = time.perf_counter() - began, running.cpu_seconds() - cpu
            measured = load.replies[before:]
            if look is not None:
                await look(port)
            if not measured:
                raise ServiceFailed(f"a service on {client} answered nothing for {seconds:g} s")
        running.terminate()
        await running.ended()
    bad = [reply for reply in load.replies if reply.status != 201]
    count = len(measured)
    times = quantiles([reply.seconds * 1000 for reply in measured])
    problems = [f"{len(bad)} answers are not 201, such as {bad[0].status}"] if bad else []
    per_request = cpu / count * 1e6
    return Run(records, gc, client, round_, count, count / took, times["p50"], times["p99"], per_request, problems)


async def measure_all(
    kinds: Iterable[Kind],
    on: Sequence[str],
    rounds: int,
    servers: str,
    clients: int,
    seconds: int,
    progress: Callable[[str], object],
) -> Speed:
    runs: list[Run] = []
    for kind, round_ in itertools.product(kinds, range(1, rounds + 1)):
        for client in on:
            runs.append(await measure(kind, client, round_, servers, clients, seconds))
            records, gc = kind
            progress(
                f"round {round_}, {records} a request, GC {gc}, {client}: {runs[-1].requests_per_s:,.0f} requests/s"
            )
    return Speed(clients, seconds, runs)
