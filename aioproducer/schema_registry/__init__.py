"""Schema registries with Confluent's API: their client, and serializers for Avro, JSON Schema and Protobuf.

    from aioproducer.schema_registry import AvroSerializer, SchemaRegistryClient

    registry = SchemaRegistryClient("https://registry:8081")
    KafkaProducer(value_serializer=AvroSerializer(registry, Order), …)

``docs/schema-registry.md`` explains them. Each needs an extra, and each name is imported only when it is used. It uses
the public package alone. A serializer asks the client for the schema's id, or registers the schema; then it encodes the
value behind the id. A deserializer reads the id, asks the client for its schema, and decodes with it.

    client/                  asks the registry: requests, failover, credentials, and what it remembers
    schema.py                schemas and references
    references.py            everything that a schema refers to
    subject_names.py         subject.name.strategy
    wire_format.py           what comes before the data
    serializer.py, deserializer.py   what all formats share
    avro.py                  Avro
    avro_models.py           Avro schemas of dataclasses and pydantic models
    avro_differences.py      what differs between two Avro schemas
    json_schema.py           JSON Schema
    protobuf.py              Protobuf
    errors.py                what goes wrong
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioproducer.schema_registry.avro import AvroDeserializer, AvroSerializer
    from aioproducer.schema_registry.avro_models import AvroType, avro_schema
    from aioproducer.schema_registry.client.registry_client import SchemaRegistryClient
    from aioproducer.schema_registry.errors import (
        IncompatibleSchemaException,
        InvalidSchemaException,
        SchemaNotFoundException,
        SchemaRegistryAuthenticationException,
        SchemaRegistryException,
        SchemaRegistryUnavailableException,
    )
    from aioproducer.schema_registry.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
    from aioproducer.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from aioproducer.schema_registry.schema import RegisteredSchema, Schema, SchemaReference

_HOMES = {
    "AvroDeserializer": "aioproducer.schema_registry.avro",
    "AvroSerializer": "aioproducer.schema_registry.avro",
    "AvroType": "aioproducer.schema_registry.avro_models",
    "IncompatibleSchemaException": "aioproducer.schema_registry.errors",
    "InvalidSchemaException": "aioproducer.schema_registry.errors",
    "JsonSchemaDeserializer": "aioproducer.schema_registry.json_schema",
    "JsonSchemaSerializer": "aioproducer.schema_registry.json_schema",
    "ProtobufDeserializer": "aioproducer.schema_registry.protobuf",
    "ProtobufSerializer": "aioproducer.schema_registry.protobuf",
    "RegisteredSchema": "aioproducer.schema_registry.schema",
    "Schema": "aioproducer.schema_registry.schema",
    "SchemaNotFoundException": "aioproducer.schema_registry.errors",
    "SchemaReference": "aioproducer.schema_registry.schema",
    "SchemaRegistryAuthenticationException": "aioproducer.schema_registry.errors",
    "SchemaRegistryClient": "aioproducer.schema_registry.client.registry_client",
    "SchemaRegistryException": "aioproducer.schema_registry.errors",
    "SchemaRegistryUnavailableException": "aioproducer.schema_registry.errors",
    "avro_schema": "aioproducer.schema_registry.avro_models",
}

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "AvroType",
    "IncompatibleSchemaException",
    "InvalidSchemaException",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "RegisteredSchema",
    "Schema",
    "SchemaNotFoundException",
    "SchemaReference",
    "SchemaRegistryAuthenticationException",
    "SchemaRegistryClient",
    "SchemaRegistryException",
    "SchemaRegistryUnavailableException",
    "avro_schema",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except AttributeError as error:  # from ... import would drop it, and say no more than that the name is missing
        raise ImportError(f"cannot import {name!r} from {__name__!r}: {error}") from error
    return value
