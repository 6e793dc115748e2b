"""``aioproducer broker`` as a process that is attacked. Nobody reads its log."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from benchmarks.harness.processes import python_command
from benchmarks.harness.usage import peak_rss_of

_START = """
import resource
from aioproducer.cli import main
if (descriptors := int(sys.argv.pop(1))):
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
main()
"""


@dataclass(frozen=True)
class AttackedBroker:
    port: int
    pid: int

    def peak_memory(self) -> int:
        """Bytes; 0 where nothing tells."""
        return peak_rss_of(self.pid) or 0


@contextlib.asynccontextmanager
async def attacked_broker(arguments: Sequence[str], descriptors: int = 0) -> AsyncIterator[AttackedBroker]:
    """With the arguments of the command, and at most so many descriptors unless that is 0."""
    reads, writes = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *python_command(f"exec({_START!r})", str(descriptors), "broker", "--port", "0", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=writes,
        )
        os.close(writes)
        assert process.stdout is not None
        try:
            said = (await process.stdout.readline()).decode().strip()
            if not said:
                raise RuntimeError(f"aioproducer broker ended: {os.read(reads, 65_536).decode()}")
            yield AttackedBroker(int(said.rpartition(":")[2]), process.pid)
            if process.returncode is not None:
                raise RuntimeError(f"the attack ended the broker: {os.read(reads, 65_536).decode()}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await process.wait()
    finally:
        os.close(reads)
