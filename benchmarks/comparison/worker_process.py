"""Starts worker processes, and takes their answers."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from typing import Any

from benchmarks.clients import PURE
from benchmarks.harness.processes import python_command
from benchmarks.works.run import Description, Measurement, Run

_START = "from benchmarks.comparison.worker import main; main(sys.argv[1:])"


class WorkerFailed(Exception):
    """The worker has given no answer; the message says why."""


async def describe(client: str) -> Description:
    """The first time, what a client needs may have to be fetched or built."""
    return Description(**await _answer(client, "describe", client, timeout=300.0))


async def measure(run: Run, *, timeout: float) -> Measurement:
    """``timeout`` is in seconds, for everything from the start of the process to its end."""
    return Measurement(**await _answer(run.client, "run", json.dumps(asdict(run)), timeout=timeout))


async def _answer(client: str, *arguments: str, timeout: float) -> dict[str, Any]:
    pipe = asyncio.subprocess.PIPE
    command = python_command(_START, *arguments, checkout_first=client == PURE)
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(timeout):
            said, complaints = await process.communicate()
    except TimeoutError:
        raise WorkerFailed(f"no answer within {timeout:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    sys.stderr.write(complaints.decode(errors="replace"))
    if process.returncode != 0:
        last = complaints.decode(errors="replace").strip().rpartition("\n")[2]
        raise WorkerFailed(last or f"exit status {process.returncode}")
    answer: dict[str, Any] = json.loads(said.splitlines()[-1])
    return answer
