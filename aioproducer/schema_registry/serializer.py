"""The common part of the serializers of all formats: the schema's id is found before the first record of a topic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypedDict, Unpack

from aioproducer.errors import ConfigException, IllegalArgumentException, SerializationException
from aioproducer.schema_registry.client.registry_client import SchemaRegistryClient
from aioproducer.schema_registry.schema import RegisteredSchema, Schema, SchemaType
from aioproducer.schema_registry.subject_names import SubjectNameStrategyLike, strategy_of
from aioproducer.types import D

Encode = Callable[[Any], bytes]
"""Makes the bytes of a key or value, with the schema's id before them."""


class SerializerOptions(TypedDict, total=False):
    """What serializers have in common; the names are Confluent's."""

    is_key: bool
    """It serializes keys, and not values. Default: false."""

    auto_register_schemas: bool
    """The schema is registered if it is not yet. Default: true, unless one of the next two is given."""

    use_latest_version: bool
    """The subject's latest version is written with, whatever the own schema is. Default: false."""

    use_schema_id: int | None
    """The schema with this id is written with. Default: None."""

    normalize_schemas: bool
    """The registry compares and stores schemas in a normal form. Default: false."""

    subject_name_strategy: SubjectNameStrategyLike
    """How subjects are named: ``TopicNameStrategy``, which is the default, ``RecordNameStrategy``,
    ``TopicRecordNameStrategy``, or a callable ``(topic, is_key, record_name) -> subject``."""


class SchemaSerializer(ABC, Generic[D]):
    """A serializer for ``key_serializer`` or ``value_serializer`` that writes Confluent's wire format.

    The first record of a topic waits until the registry has given the id; all later ones are serialized by a plain
    call. :meth:`prepare` asks the registry before. None stays None. What does not fit the schema raises
    SerializationException. One serializer may serve several producers.
    """

    schema_type: SchemaType
    schema_format: str | None = None
    """The format that schemas are asked for in."""

    def __init__(self, registry: SchemaRegistryClient, **options: Unpack[SerializerOptions]) -> None:
        self.registry = registry
        if unknown := options.keys() - SerializerOptions.__annotations__.keys():
            raise ConfigException(f"unknown serializer config {min(unknown)!r}", name=min(unknown))
        self.is_key = options.get("is_key", False)
        self._latest = options.get("use_latest_version", False)
        self._schema_id = options.get("use_schema_id")
        self._registers = options.get("auto_register_schemas", not self._latest and self._schema_id is None)
        self._normalizes = options.get("normalize_schemas", False)
        self._subject_name = strategy_of(options.get("subject_name_strategy", "TopicNameStrategy"))
        others = {
            "auto.register.schemas": self._registers,
            "use.latest.version": self._latest,
            "use.schema.id": self._schema_id is not None,
        }
        given = [name for name, value in others.items() if value]
        if len(given) > 1:
            raise ConfigException(
                f"config {given[1]!r}: {given[0]} is there, too: leave one of them out", name=given[1]
            )
        self._encode: dict[str, Encode] = {}
        """By topic, for all that are prepared."""

    def serialize(
        self, topic: str, headers: list[tuple[str, bytes | None]], data: D | None, /
    ) -> bytes | Awaitable[bytes | None] | None:
        """The bytes; an awaitable of them for the first record of a topic."""
        if data is None:
            return None
        encode = self._encode.get(topic)
        return self._first(topic, data) if encode is None else encode(data)

    async def prepare(self, *topics: str) -> None:
        """Gets the ids of these topics' schemas, so that already their first records need not wait.

        Raises SchemaRegistryException and ConfigException.
        """
        for topic in topics:
            if topic not in self._encode:
                self._encode[topic] = await self._encoder(topic)

    async def _first(self, topic: str, data: Any) -> bytes:
        await self.prepare(topic)
        return self._encode[topic](data)

    @abstractmethod
    async def _encoder(self, topic: str) -> Encode:
        """Asks the registry; what it returns is called for each record of the topic."""

    async def _registered(self, topic: str, record_name: str, schema: Schema | None) -> RegisteredSchema:
        """The schema to write with; ``schema`` is the own one."""
        if self._schema_id is not None:
            found = await self._with_id(self._schema_id)
        else:
            subject = self._subject_name(topic, self.is_key, record_name)
            if self._latest:
                found = await self.registry.get_latest_version(subject, format=self.schema_format)
            elif schema is None:
                raise ConfigException(
                    "a serializer without a schema needs use.latest.version or use.schema.id", name="use.latest.version"
                )
            elif self._registers:
                found = await self.registry.register_schema(subject, schema, normalize=self._normalizes)
            else:
                found = await self.registry.lookup_schema(subject, schema, normalize=self._normalizes)
        if found.schema.type != self.schema_type:
            raise SerializationException(
                f"the schema with id {found.id} is one of {found.schema.type}, and {type(self).__name__} writes"
                f" {self.schema_type}"
            )
        return found

    async def _with_id(self, schema_id: int) -> RegisteredSchema:
        schema = await self.registry.get_schema(schema_id, format=self.schema_format)
        return RegisteredSchema(schema_id, "", None, schema)


def unfit(what: str, error: Exception) -> SerializationException:
    """The error for data that does not fit; ``what`` names the data and the schema."""
    return SerializationException(f"{what}: {type(error).__name__}: {error}")


def check_schema(schema: object) -> None:
    """IllegalArgumentException for what no serializer takes as a schema."""
    if schema is not None and not isinstance(schema, str | dict | list | Schema | type):
        raise IllegalArgumentException(
            f"the schema is of type {type(schema).__name__}; it must be a class, the text of a schema, JSON that has"
            " been read, or an aioproducer.schema_registry.Schema"
        )
