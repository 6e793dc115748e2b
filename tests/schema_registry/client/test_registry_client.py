"""The client: what is cached, and errors in plain words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioproducer.errors import IllegalArgumentException
from aioproducer.schema_registry import (
    IncompatibleSchemaException,
    InvalidSchemaException,
    RegisteredSchema,
    Schema,
    SchemaNotFoundException,
    SchemaReference,
    SchemaRegistryClient,
)
from aioproducer.schema_registry.client.registry_client import CACHED
from tests.support.schema_registry.fake_registry import Answer, FakeRegistry

INT, LONG = Schema('"int"'), Schema('"long"')


@pytest.fixture
def registry(fake: FakeRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient(fake.url, max_retries=0)


async def test_a_schema_is_registered_once(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    first, second = await registry.register_schema("a", INT), await registry.register_schema("a", LONG)
    assert (first.id, second.id, first.subject, first.schema) == (1, 2, "a", INT)
    assert await registry.register_schema("a", INT) is first
    assert len(fake.requests) == 2


async def test_many_at_once_are_one_request(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    found = await asyncio.gather(*(registry.register_schema("a", INT) for _ in range(100)))
    assert {each.id for each in found} == {1}
    assert len(fake.requests) == 1


async def test_lookups_and_versions_are_cached_and_the_latest_is_not(
    fake: FakeRegistry, registry: SchemaRegistryClient
) -> None:
    await registry.register_schema("a", INT)
    for _ in range(2):
        assert await registry.lookup_schema("a", INT) == RegisteredSchema(1, "a", 1, INT)
        assert await registry.get_version("a", 1) == RegisteredSchema(1, "a", 1, INT)
        assert await registry.get_schema(1) == INT
    assert len(fake.requests) == 4
    assert (await registry.get_latest_version("a")).version == 1
    await registry.register_schema("a", LONG)
    assert (await registry.get_latest_version("a")).version == 2


async def test_references_are_read(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    schema = Schema('"x"', "AVRO", (SchemaReference("x", "x-value", 3),))
    await registry.register_schema("a", schema)
    assert await registry.get_schema(1) == schema


async def test_a_missing_version_or_subject_is_named(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    with pytest.raises(SchemaNotFoundException, match="'a' has no version 5"):
        await registry.get_version("a", 5)
    with pytest.raises(SchemaNotFoundException, match=r"no version of 'a'.*Subject 'a' not found") as failed:
        await registry.lookup_schema("a", INT)
    assert failed.value.error_code == 40401
    with pytest.raises(SchemaNotFoundException, match="/schemas/ids/9"):
        await registry.get_schema(9)
    await registry.register_schema("a", INT)
    assert (await registry.lookup_schema("a", INT)).id == 1  # a failure is not cached


async def test_the_cache_is_bounded(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    fake.failing = lambda method, path: (200, {"schema": '"int"'})
    for number in range(CACHED + 10):
        registry._schemas[number, "x"] = INT
    registry._schemas = dict(list(registry._schemas.items())[:CACHED])
    await registry.get_schema(1)
    assert len(registry._schemas) == CACHED
    assert (0, "x") not in registry._schemas


async def test_an_invalid_schema(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    fake.failing = lambda method, path: (422, {"error_code": 42201, "message": "Invalid AVRO schema"})
    with pytest.raises(InvalidSchemaException, match=r"the schema of 'a' was not registered.*Invalid AVRO schema"):
        await registry.register_schema("a", INT)


ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}'
MORE = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"},{"name":"total","type":"int"}]}'


def refusing(method: str, path: str) -> Answer | None:
    if path.startswith("/config"):
        return 200, {"compatibilityLevel": "BACKWARD"}
    return (
        (409, {"error_code": 409, "message": "Schema being registered is incompatible"}) if method == "POST" else None
    )


async def test_an_incompatible_schema_names_subject_version_and_difference(
    fake: FakeRegistry, registry: SchemaRegistryClient
) -> None:
    await registry.register_schema("orders-value", Schema(ORDER))
    fake.failing = refusing
    with pytest.raises(IncompatibleSchemaException) as failed:
        await registry.register_schema("orders-value", Schema(MORE))
    error = failed.value
    assert (error.subject, error.version, error.status) == ("orders-value", 1, 409)
    assert error.differences == ("the field 'total' (int) is new and has no default",)
    assert str(error).startswith(
        "the schema cannot become a version of 'orders-value', because it is not compatible (BACKWARD) with its latest"
        " version, 1: the field 'total' (int) is new and has no default. POST "
    )
    assert "Schema being registered is incompatible" in str(error)
    assert (error.fresh().subject, error.fresh().differences) == (error.subject, error.differences)


async def test_an_incompatible_schema_is_named_even_if_the_registry_fails_to_explain(
    fake: FakeRegistry, registry: SchemaRegistryClient
) -> None:
    fake.failing = lambda method, path: (409, b"") if method == "POST" else (500, b"")
    with pytest.raises(
        IncompatibleSchemaException, match="'a', because it is not compatible with its versions"
    ) as failed:
        await registry.register_schema("a", INT)
    assert (failed.value.version, failed.value.differences) == (None, ())


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"is_compatible": True}, []),
        ({"is_compatible": False, "messages": ["a", "b"]}, ["a", "b"]),
        ({"is_compatible": False, "reason": "a"}, ["a"]),
        ({"is_compatible": False}, ["it is not compatible"]),
    ],
)
async def test_compatibility_is_tested(
    fake: FakeRegistry, registry: SchemaRegistryClient, answer: Any, words: list[str]
) -> None:
    fake.failing = lambda method, path: (200, answer)
    assert await registry.test_compatibility("a", INT) == words
    assert fake.paths == ["POST /compatibility/subjects/a/versions/latest?verbose=true"]


async def test_a_deleted_subject_is_forgotten(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    await registry.register_schema("a", INT)
    fake.failing = lambda method, path: (200, [1]) if method == "DELETE" else None
    assert await registry.delete_subject("a", permanent=True) == [1]
    assert fake.paths[-1] == "DELETE /subjects/a?permanent=true"
    await registry.register_schema("a", INT)
    assert len(fake.requests) == 3


async def test_other_calls(fake: FakeRegistry, registry: SchemaRegistryClient) -> None:
    fake.failing = lambda method, path: (200, {"compatibilityLevel": "FULL", "compatibility": "FULL"})
    assert await registry.get_compatibility() == await registry.get_compatibility("a b") == "FULL"
    await registry.set_compatibility("FULL")
    await registry.set_compatibility("FULL", "a b")
    assert fake.paths == [
        "GET /config",
        "GET /config/a%20b?defaultToGlobal=true",
        "PUT /config",
        "PUT /config/a%20b",
    ]
    assert fake.requests[-1][3] == {"compatibility": "FULL"}
    fake.failing = lambda method, path: (200, [1, 2])
    assert await registry.get_versions("a") == [1, 2]
    with pytest.raises(IllegalArgumentException, match="the subject is ''"):
        await registry.get_versions("")
