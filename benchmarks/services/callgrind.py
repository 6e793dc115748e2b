"""The instructions of a process, counted by valgrind's callgrind: on a busy machine as many as on an idle one."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

TOOLS = ("valgrind", "callgrind_control")


class CallgrindFailed(Exception):
    """It did not count; with what it said."""


def missing() -> str | None:
    """The tool that is not installed, if one is not."""
    return next((tool for tool in TOOLS if shutil.which(tool) is None), None)


class Callgrind:
    """A process that runs some 50 times as slow, and of which a part can be counted."""

    def __init__(self, written: Path) -> None:
        """``written`` is the file that callgrind writes when the process ends."""
        self._written = written

    def command(self, command: Sequence[str]) -> list[str]:
        """The command that runs ``command`` under callgrind, with counting switched off at first."""
        options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={self._written}"]
        return ["valgrind", "--quiet", *options, *command]

    @contextlib.asynccontextmanager
    async def counting(self, pid: int) -> AsyncIterator[None]:
        await self._tell(pid, "on")
        yield
        await self._tell(pid, "off")

    def instructions(self) -> int:
        """The counted instructions of all threads; available when the process has ended."""
        totals = [line for line in self._written.read_text().splitlines() if line.startswith("totals:")]
        if not totals:
            raise CallgrindFailed(f"callgrind wrote no totals into {self._written}")
        return int(totals[-1].split()[1])

    @staticmethod
    async def _tell(pid: int, state: str) -> None:
        """Tells the process, at its next system call or slice of work, to count or not."""
        pipe = asyncio.subprocess.PIPE
        control = await asyncio.create_subprocess_exec(
            "callgrind_control", "--instr=" + state, str(pid), stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await control.communicate()
        if control.returncode:
            raise CallgrindFailed(f"callgrind_control --instr={state} {pid}: {said.decode(errors='replace').strip()}")
