"""The time and memory that ``aioproducer broker`` needs to start."""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import dataclass

from benchmarks.harness.processes import python_command
from benchmarks.harness.usage import peak_rss_of


@dataclass(frozen=True)
class Start:
    """From the start of the process until it says where it can be connected to; the most memory that it had by then
    (resident), None if the system does not report it."""

    round: int
    seconds: float
    peak_mib: float | None


async def start(round_: int) -> Start:
    """Starts it as a user does, and stops it again."""
    command = python_command("from aioproducer.cli import main; main()", "broker", "--port", "0")
    pipe, begun = asyncio.subprocess.PIPE, time.perf_counter()
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    try:
        address = await process.stdout.readline()
        seconds = time.perf_counter() - begun
        peak = peak_rss_of(process.pid)
        if address:
            process.send_signal(signal.SIGINT)
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if not address or process.returncode != 0:
        raise RuntimeError(f"aioproducer broker ended with status {process.returncode}: {said.decode()}")
    return Start(round_, seconds, None if peak is None else peak / (1 << 20))
