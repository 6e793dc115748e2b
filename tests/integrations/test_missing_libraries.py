"""Without the library of an extra, the error says which extra to install."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("library", "extra"),
    [
        ("fastapi", "fastapi"),
        ("aiohttp", "aiohttp"),
        ("prometheus_client", "prometheus"),
        ("opentelemetry.trace", "opentelemetry"),
    ],
)
def test_it_names_the_extra(library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"aioproducer.integrations.{extra}"
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=rf"^{module} needs .*: pip install 'aioproducer\[{extra}\]'$"):
        import_module(module)
