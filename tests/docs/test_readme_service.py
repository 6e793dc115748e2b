"""The service of README.md, run by uvicorn as its readers do, while its broker dies or falls silent.

With Kafka's own time-outs requests would take two minutes. The limits here are those of others: a proxy that waits 15
seconds, and Kubernetes, which kills a service 30 seconds after SIGTERM.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from benchmarks.services.http_load import HOST
from benchmarks.services.process import free_port, service
from benchmarks.services.trouble import ENDED
from tests.cli.conftest import COMMAND, environment
from tests.docs.test_code import blocks
from tests.support.leaks import no_leaks as no_leaks

pytestmark = [
    pytest.mark.usefixtures("no_leaks"),
    pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM that could be caught"),
    pytest.mark.timeout(180),
]

PATIENCE = 15.0
GRACE = 30.0


@asynccontextmanager
async def broker() -> AsyncIterator[tuple[int, str]]:
    """A broker in a process of its own: its id, and where it listens."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "broker", "--port", "0", stdout=pipe, stderr=asyncio.subprocess.DEVNULL, env=environment()
    )
    assert process.stdout is not None
    try:
        (servers,) = re.findall(rf"{HOST}:\d+", (await process.stdout.readline()).decode())
        yield process.pid, servers
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGSTOP], ids=["dies", "hangs"])
async def test_it_answers_in_time_while_its_broker_is_away_and_ends_in_time(
    sent: signal.Signals, tmp_path: Path
) -> None:
    (block,) = (block for block in blocks("README.md") if "async def create(" in block)
    port = free_port()
    async with broker() as (pid, servers):
        (tmp_path / "orders.py").write_text(block.replace("localhost:9092", servers))
        command = [sys.executable, "-m", "uvicorn", "--app-dir", str(tmp_path), "--port", str(port), "orders:app"]
        async with (
            service(command, port, {}) as running,
            httpx.AsyncClient(base_url=f"http://{HOST}:{port}", timeout=PATIENCE) as client,
        ):
            assert (await client.post("/orders", json={"id": "1"})).status_code == 201
            os.kill(pid, sent)
            answers = await asyncio.gather(*(client.post("/orders", json={"id": "2"}) for _ in range(10)))
            assert {answer.status_code for answer in answers} <= {503, 504}
            async with asyncio.timeout(PATIENCE):
                while (await client.get("/health/ready")).status_code != 503:
                    pass
            assert (await client.get("/health/live")).status_code == 200
            late = await client.post("/orders", json={"id": "3"})
            assert late.status_code == 503, late.text
            assert int(late.headers["Retry-After"]) > 0
            assert late.json()["outcome"] == "not_sent"

            waiting = [asyncio.create_task(client.post("/orders", json={"id": "4"})) for _ in range(10)]
            await asyncio.sleep(1)  # for the service to have read them all, also on a busy machine
            running.terminate()
            async with asyncio.timeout(GRACE):
                assert await running.ended() in ENDED
            assert {(await each).status_code for each in waiting} <= {503, 504}
