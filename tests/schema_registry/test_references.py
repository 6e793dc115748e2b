"""Schemas that a schema refers to are loaded in order, once, and not without end."""

from __future__ import annotations

import pytest

from aioproducer.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryException,
    references,
)
from aioproducer.schema_registry.references import DEEPEST, referenced
from tests.support.schema_registry.fake_registry import Answer, FakeRegistry


@pytest.fixture
def registry(fake: FakeRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient(fake.url, max_retries=0)


def refers(*names: str, text: str = '"int"') -> Schema:
    return Schema(text, references=tuple(SchemaReference(name, name, 1) for name in names))


async def test_each_comes_after_what_it_refers_to(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    schemas = {"a": refers(), "b": refers("a", text='"long"'), "c": refers("a", "b", text='"string"')}
    for name, schema in schemas.items():
        await registry.register_schema(name, schema)
    fake.requests.clear()
    assert list((await referenced(registry, refers("c", "b"))).items()) == list(schemas.items())
    assert len(fake.requests) == 3


async def test_a_circle(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    circle = {"schema": '"A"', "references": [{"name": "A", "subject": "a", "version": 1}]}
    fake.failing = lambda method, path: (200, {"subject": "a", "version": 1, "id": 1, **circle})
    with pytest.raises(SchemaRegistryException, match="refers to itself through 'a'"):
        await referenced(registry, refers("a"))


async def test_a_chain_without_end(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    def chain(method: str, path: str) -> Answer:
        number = len(fake.requests)
        reference = {"name": f"n{number}", "subject": f"n{number}", "version": 1}
        return 200, {"subject": "n", "version": 1, "id": 1, "schema": '"int"', "references": [reference]}

    fake.failing = chain
    with pytest.raises(SchemaRegistryException, match=f"through more than {DEEPEST} of them"):
        await referenced(registry, refers("n0"))
    assert len(fake.requests) == DEEPEST


async def test_too_many(fake: FakeRegistry, registry: SchemaRegistryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "MOST", 3)
    for name in "abcd":
        await registry.register_schema(name, refers())
    assert len(await referenced(registry, refers("a", "b", "c"))) == 3
    with pytest.raises(SchemaRegistryException, match="refers to more than 3 others"):
        await referenced(registry, refers("a", "b", "c", "d"))
