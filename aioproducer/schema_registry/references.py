"""Everything that a schema refers to."""

from __future__ import annotations

from typing import Final

from aioproducer.schema_registry.client.registry_client import SchemaRegistryClient
from aioproducer.schema_registry.errors import SchemaRegistryException
from aioproducer.schema_registry.schema import Schema

MOST: Final = 1000
"""Schemas that a schema may refer to, directly or not."""

DEEPEST: Final = 50
"""Schemas of which each refers to the next."""


async def referenced(registry: SchemaRegistryClient, schema: Schema) -> dict[str, Schema]:
    """By name, all that the schema refers to, and that these refer to; each comes after what it refers to itself."""
    found: dict[str, Schema] = {}
    await _load(registry, schema, found, ())
    return found


async def _load(
    registry: SchemaRegistryClient, schema: Schema, found: dict[str, Schema], path: tuple[tuple[str, int], ...]
) -> None:
    for reference in schema.references:
        if reference.name in found:
            continue
        version = (reference.subject, reference.version)
        if version in path:
            raise SchemaRegistryException(f"the schema refers to itself through {reference.subject!r}")
        if len(found) >= MOST or len(path) >= DEEPEST:
            raise SchemaRegistryException(
                f"the schema refers to more than {MOST} others, or through more than {DEEPEST} of them"
            )
        one = (await registry.get_version(*version)).schema
        await _load(registry, one, found, (*path, version))
        found[reference.name] = one
