"""The services among the examples: started as documented, and under load while broker and service go."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from benchmarks.services.http_load import HttpLoad
from benchmarks.services.process import free_port, service
from benchmarks.services.services import TARGETS
from benchmarks.services.trouble import ENDED, Target, in_trouble, numbered
from tests.support.leaks import no_leaks as no_leaks

pytestmark = [
    pytest.mark.usefixtures("no_leaks"),
    pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM that could be caught"),
]

ROOT = Path(__file__).parents[2]
CLIENTS = 50
"""At a time; ``python -m benchmarks services`` has 1,000."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.topic)
async def test_every_request_answered_2xx_is_in_the_log_once(target: Target) -> None:
    done = await in_trouble(target, CLIENTS, 0.5)
    assert done.problems == []
    assert done.in_log >= CLIENTS


@pytest.mark.parametrize(
    ("documented", "options", "path"),
    [
        ("uvicorn --app-dir examples/fastapi_orders orders:app", "--port {}", "/orders"),
        ("uvicorn --app-dir examples/fastapi_units orders:app", "--port {}", "/orders"),
        ("python examples/aiohttp_events/events.py", "{}", "/events"),
    ],
)
async def test_one_command_starts_it_with_a_broker_of_its_own(documented: str, options: str, path: str) -> None:
    assert f"    {documented}" in (ROOT / "examples" / "README.md").read_text()
    port = free_port()
    words = shlex.split(f"{documented} {options.format(port)}")
    program = [sys.executable] if words[0] == "python" else [sys.executable, "-m", words[0]]
    command = [*program, *(str(ROOT / word) if word.startswith("examples/") else word for word in words[1:])]
    async with service(command, port, {}) as running:
        load = HttpLoad(port, path, numbered, 2)
        async with load.flowing(patience=10):
            await load.answered(10)
        assert {reply.status for reply in load.replies} == {201}
        running.terminate()
        assert await running.ended() in ENDED
