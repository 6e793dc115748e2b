"""docs/tutorial.md, as its readers follow it: each block is a file of its own, which needs none of the others."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from asyncio.subprocess import PIPE
from dataclasses import fields
from pathlib import Path

import httpx
import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.configs.producer_config import ProducerConfig
from benchmarks.services.http_load import HOST
from benchmarks.services.process import free_port, service
from tests.cli.conftest import environment
from tests.support.leaks import no_leaks as no_leaks

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial.md").read_text()
FILES = dict(re.findall(r"`(\w+\.py)`[^`]*:\n\n```python\n(.*?)```", TEXT, re.DOTALL))
SCRIPTS = [name for name in FILES if name not in ("service.py", "test_orders.py")]

pytestmark = pytest.mark.usefixtures("no_leaks")


def save(name: str, directory: Path, servers: str) -> Path:
    """The file, with ``servers`` in the place of the reader's broker."""
    file = directory / name
    file.write_text(FILES[name].replace("localhost:9092", servers))
    return file


async def start(file: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, file, env=environment(), stdout=PIPE, stderr=PIPE)


def test_every_block_has_the_name_of_a_file() -> None:
    assert len(FILES) == TEXT.count("```") // 2


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_runs_by_itself(name: str, tmp_path: Path) -> None:
    async with EmbeddedCluster() as cluster:
        process = await start(save(name, tmp_path, cluster.bootstrap_servers))
        said, errors = await process.communicate()
        assert (process.returncode, errors) == (0, b""), errors.decode()
        if name != "too_large.py":
            assert next(cluster.log("orders").records(), None) is not None
    if name == "stream.py":
        assert said == b"1000 delivered, 0 failed\n"


async def test_send_waits_for_a_broker_that_is_started_later(tmp_path: Path) -> None:
    port = free_port()
    process = await start(save("send.py", tmp_path, f"{HOST}:{port}"))
    assert process.stderr is not None
    assert b"trying again" in await process.stderr.readline()
    async with EmbeddedCluster(host=HOST, ports=[port]):
        said, _ = await process.communicate()
    assert said == b"partition 0, offset 0\n"


def test_the_limits_are_those_of_the_configs() -> None:
    defaults = {field.name: field.default for field in fields(ProducerConfig)}
    assert "`max.block.ms` (60 seconds)" in TEXT
    assert defaults["max_block_ms"] == 60_000
    assert "`delivery.timeout.ms` (two minutes)" in TEXT
    assert defaults["delivery_timeout_ms"] == 120_000


async def test_its_service_takes_orders(tmp_path: Path) -> None:
    (order,) = re.findall(r"-d '(.*)' http://localhost:8000/orders", TEXT)
    port = free_port()
    async with EmbeddedCluster() as cluster:
        save("service.py", tmp_path, cluster.bootstrap_servers)
        command = [sys.executable, "-m", "uvicorn", "--app-dir", str(tmp_path), "--port", str(port), "service:app"]
        async with service(command, port, {}), httpx.AsyncClient(base_url=f"http://{HOST}:{port}") as client:
            answer = await client.post("/orders", content=order, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()) == (201, 0)


def test_its_test_passes_with_what_it_installs(tmp_path: Path) -> None:
    """No option helps it along: the page gives none."""
    assert "\n    pip install pytest\n    pytest\n" in TEXT
    save("test_orders.py", tmp_path, "")
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    command += ["-p", "no:asyncio"]  # which the page does not install
    command += ["-p", "aioproducer.testing.pytest_broker"]  # which an installed package has as its entry point
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
