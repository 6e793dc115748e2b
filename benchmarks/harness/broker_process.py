"""A broker in a process of its own: what it costs is not the producer's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from benchmarks.harness.python_process import python_command


@contextlib.asynccontextmanager
async def broker_process(statement: str, *arguments: str) -> AsyncIterator[str]:
    """The line that it prints when it can be connected to. It has to end with its standard input."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*python_command(statement, *arguments), stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode().strip()
        if not said:
            raise RuntimeError(f"the broker ended with status {await process.wait()}")
        yield said
    finally:
        process.stdin.close()
        await process.wait()
