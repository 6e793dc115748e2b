"""A registry over real HTTP for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.schema_registry.fake_registry import FakeRegistry, fake_registry

pytest.importorskip("httpx", reason="httpx is not installed")


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with fake_registry() as fake:
        yield fake
