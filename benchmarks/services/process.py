"""An HTTP service in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import aioproducer
from benchmarks.harness.processes import python_command
from benchmarks.harness.usage import cpu_seconds_of
from benchmarks.services.http_load import HOST

STARTUP = 30.0
"""Seconds that a service may take until it is ready."""

EXAMPLES = Path(__file__).parents[2] / "examples"

_PACKAGE = str(Path(aioproducer.__file__).parents[1])


class ServiceFailed(Exception):
    """It did not start, or did not end; with what it said."""


class Service:
    """A service that is ready."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.port = port
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def terminate(self) -> None:
        """SIGTERM."""
        self._process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """The exit status, when it has ended."""
        return await self._process.wait()

    def cpu_seconds(self) -> float:
        """What it has used so far; NaN if the system does not report it."""
        found = cpu_seconds_of(self._process.pid)
        return float("nan") if found is None else found


@contextlib.asynccontextmanager
async def service(
    command: Sequence[str], port: int, environment: Mapping[str, str], *, startup: float = STARTUP
) -> AsyncIterator[Service]:
    """Runs ``command``, a service on ``port`` with /health/ready; it is killed at the end if it still runs."""
    with tempfile.TemporaryFile() as said:
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "PYTHONPATH": _PACKAGE, **environment}, stdout=said, stderr=said
        )
        try:
            try:
                async with asyncio.timeout(startup):
                    await _until_ready(process, port)
            except (TimeoutError, ServiceFailed) as error:
                said.seek(0)
                words = said.read().decode(errors="replace")
                raise ServiceFailed(f"{' '.join(command)}: {str(error) or 'not ready in time'}\n{words}") from error
            yield Service(process, port)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _until_ready(process: asyncio.subprocess.Process, port: int) -> None:
    while True:
        if process.returncode is not None:
            raise ServiceFailed(f"it ended with status {process.returncode}")
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(f"GET /health/ready HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
                if b" 200 " in await reader.readline():
                    return
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
        await asyncio.sleep(0.05)


def free_port() -> int:
    """A port without a listener, which the system does not give to outgoing connections meanwhile."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port


def fastapi_orders(port: int) -> list[str]:
    """The command of the example."""
    example = str(EXAMPLES / "fastapi_orders")
    options = ["--host", HOST, "--port", str(port), "--no-access-log", "--log-level", "warning"]
    return [sys.executable, "-m", "uvicorn", "--app-dir", example, *options, "orders:app"]


def aiohttp_events(port: int) -> list[str]:
    """The command of the example."""
    return [sys.executable, str(EXAMPLES / "aiohttp_events" / "events.py"), str(port)]


def service_on(client: str, port: int, servers: str, collector: str) -> list[str]:
    """The command of ``app.py`` on a client of ``clients.py``."""
    statement = "from benchmarks.services.app import main; main(*sys.argv[1:])"
    return python_command(statement, client, str(port), servers, collector)
