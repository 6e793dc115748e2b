"""The process of one client: memory and CPU are its own. Who measures asks it here, and here it answers, as JSON.

describe CLIENT       a Description
run RUN               a Measurement; RUN is JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.clients import PURE, load_client
from benchmarks.clients.client import Missing
from benchmarks.harness.processes import python_command
from benchmarks.harness.runtime import loop_factory
from benchmarks.works.curve_works import CURVE_WORKS
from benchmarks.works.line_works import LINE_WORKS
from benchmarks.works.run import Description, Measurement, Run
from benchmarks.works.works import WORKS

DESCRIBE, RUN = "describe", "run"

_START = "from benchmarks.comparison.worker import main; main(sys.argv[1:])"


class WorkerFailed(Exception):
    """The worker has given no answer; the message says why."""


async def describe(client: str) -> Description:
    """The first time, what a client needs may have to be fetched or built."""
    return Description(**await _answer(client, DESCRIBE, client, timeout=300.0))


async def measure(run: Run, *, timeout: float) -> Measurement:
    """``timeout`` is in seconds, for everything from the start of the process to its end."""
    return Measurement(**await _answer(run.client, RUN, json.dumps(asdict(run)), timeout=timeout))


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


def main(arguments: Sequence[str]) -> None:
    """The process: its answer is the last line that it prints."""
    command, argument = arguments
    answer: Description | Measurement
    if command == DESCRIBE:
        answer = _description(argument)
    else:
        run = Run(**json.loads(argument))
        with asyncio.Runner(loop_factory=loop_factory(run.loop)) as runner:
            answer = runner.run(load_client(run.client).measure(run))
    print(json.dumps(asdict(answer)))


def _description(name: str) -> Description:
    try:
        client = load_client(name)
        about = client.about()
    except (ImportError, Missing) as error:
        return Description(name, missing=str(error))
    every = (*WORKS.values(), *CURVE_WORKS.values(), *LINE_WORKS.values())
    works = [work.name for work in every if client.can(work) and (not work.clients or name in work.clients)]
    return Description(name, about, works, client.idempotent, client.share)
