"""The common part of the deserializers of all formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from aioproducer.errors import KafkaError, SerializationException
from aioproducer.schema_registry.client.registry_client import SchemaRegistryClient
from aioproducer.schema_registry.schema import Schema, SchemaType
from aioproducer.schema_registry.wire_format import schema_id_of

T = TypeVar("T")

CACHED: Final = 1000
"""Schemas that are kept ready; then the oldest is forgotten."""


class SchemaDeserializer(ABC, Generic[T]):
    """Reads a key or value of Confluent's wire format.

    ::

        async for record in reader.read_to_end():
            order = await deserialize(record.value)

    The first use of a schema's id asks the registry. None stays None. Raises SerializationException for data that is
    not what its schema says, and SchemaRegistryException.
    """

    schema_type: SchemaType
    schema_format: str | None = None
    """The format that schemas are asked for in."""

    def __init__(self, registry: SchemaRegistryClient) -> None:
        self.registry = registry
        self._decode: dict[int, Callable[[bytes], T]] = {}

    async def __call__(self, data: bytes | bytearray | memoryview | None) -> T | None:
        if data is None:
            return None
        data = bytes(data)
        schema_id = schema_id_of(data)
        decode = self._decode.get(schema_id)
        if decode is None:
            decode = await self._prepared(schema_id)
        try:
            return decode(data)
        except KafkaError:
            raise
        except Exception as error:
            raise SerializationException(
                f"{len(data)} bytes are not what the schema with id {schema_id} says: {type(error).__name__}: {error}"
            ) from error

    async def _prepared(self, schema_id: int) -> Callable[[bytes], T]:
        schema = await self.registry.get_schema(schema_id, format=self.schema_format)
        if schema.type != self.schema_type:
            raise SerializationException(
                f"the schema with id {schema_id} is one of {schema.type}, and {type(self).__name__} reads"
                f" {self.schema_type}"
            )
        decode = await self._decoder(schema)
        if len(self._decode) >= CACHED:
            self._decode.pop(next(iter(self._decode)), None)
        self._decode[schema_id] = decode
        return decode

    @abstractmethod
    async def _decoder(self, schema: Schema) -> Callable[[bytes], T]:
        """What reads data of this schema; it gets all bytes, from the magic one on."""
