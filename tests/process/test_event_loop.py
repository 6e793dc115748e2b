from __future__ import annotations

import asyncio
import sys

import pytest

from aioproducer.process.event_loop import new_event_loop


async def _answer() -> int:
    await asyncio.sleep(0)
    return 42


def test_it_is_uvloops_where_that_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert runner.run(_answer()) == 42
        assert isinstance(runner.get_loop(), uvloop.Loop)


def test_it_is_asyncios_where_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        assert runner.run(_answer()) == 42
        assert type(runner.get_loop()).__module__.startswith("asyncio")
