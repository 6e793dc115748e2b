"""A hostile client in a process of its own: what it computes is not the honest client's, nor the broker's."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

from aioproducer.process.descriptors import raise_limit
from benchmarks.attacks.attack_list import ATTACKS
from benchmarks.attacks.hostile_client import HostileClient
from benchmarks.harness.processes import python_command

_END = 10.0
"""Seconds that the process may take to end."""


class Attacker:
    """The process, which has prepared its attack."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def attack(self) -> None:
        """Begins, and returns when the attack is over. The process keeps its connections."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"begin\n")
        await self.says("over")

    async def says(self, line: str) -> None:
        """Returns when the process has printed this line; raises RuntimeError if it prints another, or ends."""
        assert self._process.stdout is not None
        if await self._process.stdout.readline() != f"{line}\n".encode():
            raise RuntimeError(f"the attack ended with status {await self._process.wait()}")


@contextlib.asynccontextmanager
async def attacker(attack: str, port: int, seconds: float) -> AsyncIterator[Attacker]:
    """Prepares the attack of a name. The connections stay open until this is left."""
    pipe = asyncio.subprocess.PIPE
    statement = "from benchmarks.attacks.attacker import main; main()"
    process = await asyncio.create_subprocess_exec(
        *python_command(statement, attack, str(port), str(seconds)), stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    try:
        prepared = Attacker(process)
        await prepared.says("prepared")
        yield prepared
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(_END):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def main() -> None:
    """The process: runs the attack of a name on a port for so many seconds.

    Prints when it is prepared, begins at a line of standard input, prints when it is over, and keeps its connections
    until standard input ends.
    """
    name, port, seconds = sys.argv[1:]
    raise_limit()
    with HostileClient(int(port), float(seconds)) as client:
        attack = ATTACKS[name].run(client)
        next(attack)
        print("prepared", flush=True)
        sys.stdin.readline()
        for _ in attack:
            raise AssertionError(f"{name} yields twice")
        print("over", flush=True)
        sys.stdin.read()
