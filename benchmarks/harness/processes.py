"""Processes that run a part of the benchmarks: what they cost is not the cost of the process that measures."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

_CHECKOUT = str(Path(__file__).parents[2])


def python_command(statement: str, *arguments: str, checkout_first: bool = False) -> list[str]:
    """The command that runs a statement, with the arguments in ``sys.argv[1:]``.

    An installed aioproducer comes before the checkout, unless ``checkout_first``: only what is installed is compiled.
    """
    place = "insert(0, " if checkout_first else "append("
    return [sys.executable, "-P", "-c", f"import sys; sys.path.{place}{_CHECKOUT!r}); {statement}", *arguments]


async def output_of(statement: str, *arguments: str) -> str:
    """Runs a statement, and returns what it prints. Raises RuntimeError if it fails."""
    process = await asyncio.create_subprocess_exec(
        *python_command(statement, *arguments), stdout=asyncio.subprocess.PIPE
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"{statement!r} with {arguments} ended with status {process.returncode}")
    return said.decode()


@contextlib.asynccontextmanager
async def broker_process(statement: str, *arguments: str) -> AsyncIterator[str]:
    """Runs a statement that serves as a broker until its standard input ends.

    Yields the line that it prints when it accepts connections. Raises RuntimeError if it ends without one.
    """
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
