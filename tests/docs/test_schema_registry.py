"""The code in docs/schema-registry.md runs as it stands, on a registry and an embedded broker of the test's own."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from aioproducer.broker import EmbeddedCluster
from aioproducer.config_types import RegistryOptions
from aioproducer.schema_registry.client.registry_client import SchemaRegistryClient
from aioproducer.schema_registry.serializer import SerializerOptions
from tests.support.leaks import no_leaks as no_leaks
from tests.support.schema_registry.fake_registry import FakeRegistry, fake_registry
from tests.support.schema_registry.protobuf_messages import Order

TEXT = (Path(__file__).parents[2] / "docs" / "schema-registry.md").read_text()


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with fake_registry() as fake:
        yield fake


@pytest.mark.usefixtures("no_leaks")
async def test_its_blocks_run(
    fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    generated: Any = ModuleType("orders_pb2")
    generated.Order = Order
    monkeypatch.setitem(sys.modules, "orders_pb2", generated)
    module: Any = ModuleType("schema_registry_document")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where dataclasses look for their types
    async with EmbeddedCluster() as cluster:
        for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
            code = block.replace("localhost:9092", cluster.bootstrap_servers).replace("http://localhost:8081", fake.url)
            compiled = compile(code, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            made = eval(compiled, module.__dict__)
            if inspect.isawaitable(made):
                await made
        assert len(list(cluster.log("orders").records())) == 1
        assert len(list(cluster.log("events").records())) == 2
    said = capsys.readouterr().out
    assert "{'number': 1, 'customer': 'alice', 'note': None}" in said
    assert "'logicalType': 'timestamp-micros'" in said
    assert set(fake.subjects) == {
        "customers",
        "events-Order",
        "events-Refund",
        "orders-retry-value",
        "orders-value",
    }


def test_it_names_every_config() -> None:
    for name in RegistryOptions.__annotations__:
        assert f"`{name.replace('_', '.')}`" in TEXT
    for name in SerializerOptions.__annotations__:
        assert f"| `{name}` |" in TEXT


def test_it_names_every_method() -> None:
    for name, _ in inspect.getmembers(SchemaRegistryClient, inspect.iscoroutinefunction):
        assert name.startswith("_") or f"`{name}`" in TEXT
