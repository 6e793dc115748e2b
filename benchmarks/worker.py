"""The process of one client: memory and CPU are its own. Prints one line of JSON.

describe CLIENT       a Description
run RUN               a Measurement; RUN is JSON
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.clients import load_client
from benchmarks.run import Description, Measurement, Run
from benchmarks.works import WORKS


def main(arguments: list[str]) -> None:
    command, argument = arguments
    answer: Description | Measurement
    if command == "describe":
        answer = describe(argument)
    else:
        run = Run(**json.loads(argument))
        with asyncio.Runner(loop_factory=loop_factory(run.loop)) as runner:
            answer = runner.run(measure(run))
    print(json.dumps(asdict(answer)))


def describe(name: str) -> Description:
    try:
        client = load_client(name)
    except ImportError as error:
        return Description(name, missing=str(error))
    works = [work.name for work in WORKS.values() if issubclass(client, work.needs)]
    return Description(name, client.about(), works, client.idempotent)


async def measure(run: Run) -> Measurement:
    work = WORKS[run.work]
    value = os.urandom(run.record_size)
    client = load_client(run.client)(run.bootstrap_servers)
    try:
        await client.start()
        # Connections, metadata, producer id, and whatever else a client puts off until it is needed.
        failures = await work.run(client, run.topic, value, run.warm_up)
        if failures:
            raise RuntimeError(f"records of the warm-up failed: {dict(failures)}")
        gc.collect()
        cpu, start = cpu_seconds(), time.perf_counter()
        failures = await work.run(client, run.topic, value, run.records)
        seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
        return Measurement(seconds, cpu, peak_rss(), dict(failures))
    finally:
        await client.close()


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """None is asyncio's own."""
    if name == "asyncio":
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module(name).new_event_loop
    return factory


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_rss() -> int:
    """The most memory this process ever had resident, in bytes."""
    if sys.platform == "linux":
        # ru_maxrss would be that of the process that started this one, if that was bigger.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    maximum = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return maximum if sys.platform == "darwin" else maximum * 1024
