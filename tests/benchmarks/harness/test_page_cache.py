from __future__ import annotations

import os

import pytest

from benchmarks.harness.page_cache import write_page_cache


async def test_everything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: called.append("sync"), raising=False)
    await write_page_cache()
    assert called == ["sync"]


async def test_nothing_happens_where_there_is_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sync", raising=False)
    await write_page_cache()
