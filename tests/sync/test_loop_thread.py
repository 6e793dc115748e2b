from __future__ import annotations

import sys
from importlib import import_module

import pytest


def test_without_anyio_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anyio.from_thread", None)
    monkeypatch.delitem(sys.modules, "aioproducer.sync.loop_thread", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'aioproducer\[sync\]'"):
        import_module("aioproducer.sync.loop_thread")
