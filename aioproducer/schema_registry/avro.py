"""Avro, by fastavro."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from types import ModuleType
from typing import Any, Unpack, overload

from aioproducer.errors import ConfigException, IllegalArgumentException, SerializationException
from aioproducer.schema_registry.avro_differences import type_in_words
from aioproducer.schema_registry.avro_models import AvroModel, avro_model
from aioproducer.schema_registry.client.registry_client import SchemaRegistryClient
from aioproducer.schema_registry.deserializer import SchemaDeserializer
from aioproducer.schema_registry.references import referenced
from aioproducer.schema_registry.schema import Schema
from aioproducer.schema_registry.serializer import Encode, SchemaSerializer, SerializerOptions, check_schema, unfit
from aioproducer.schema_registry.wire_format import LENGTH, prefix
from aioproducer.types import D

AvroSchema = str | Schema | Mapping[str, Any] | Sequence[Any]
"""The text of a schema, JSON that has been read, or a Schema, which may have references."""


class AvroOptions(SerializerOptions, total=False):
    """What an Avro serializer may be given besides."""

    namespace: str | None
    """The namespace of the schema that is derived from a class. Default: None."""


class AvroSerializer(SchemaSerializer[D]):
    """Writes Avro: dicts and the like, as fastavro takes them, by a ``schema``; or the objects of a dataclass or
    pydantic model, from which the schema is derived.

    ::

        KafkaProducer(value_serializer=AvroSerializer(registry, Order), …)

    A field that the schema does not have is an error, as is one that is missing and has no default. Without a
    ``schema``, ``use_latest_version`` or ``use_schema_id`` says which one is written with.
    """

    schema_type = "AVRO"

    @overload
    def __init__(self, registry: SchemaRegistryClient, schema: type[D], **options: Unpack[AvroOptions]) -> None: ...

    @overload
    def __init__(
        self: AvroSerializer[Any],
        registry: SchemaRegistryClient,
        schema: AvroSchema | None = None,
        **options: Unpack[AvroOptions],
    ) -> None: ...

    def __init__(self, registry: SchemaRegistryClient, schema: Any = None, **options: Any) -> None:
        namespace = options.pop("namespace", None)
        super().__init__(registry, **options)
        check_schema(schema)
        self._fastavro = fastavro()
        self._model: AvroModel | None = None
        self._class: type[Any] | None = None
        if isinstance(schema, type):
            self._class = schema
            self._model = avro_model(schema, namespace)
            schema = self._model.schema
        self.schema: Schema | None = None if schema is None else _schema(schema)
        self._name = ""
        if self.schema is not None:
            raw = _read(self.schema.text)
            self._name = _full_name(raw)
            if not self.schema.references:
                _parsed(raw, {})

    async def _encoder(self, topic: str) -> Encode:
        found = await self._registered(topic, self._name, self.schema)
        parsed = await parsed_schema(self.registry, found.schema)
        head, name = prefix(found.id), f"the Avro schema {self._name or found.id}"
        write = self._fastavro.schemaless_writer

        def encode(data: Any) -> bytes:
            stream = BytesIO()
            stream.write(head)
            try:
                write(stream, parsed, data, False, True)
            except Exception as error:
                raise self._unfit(name, parsed, data, error) from error
            return stream.getvalue()

        if self._model is None:
            return encode
        return self._of_model(self._model, encode, head, parsed, name, own=found.schema == self.schema)

    def _of_model(self, model: AvroModel, encode: Encode, head: bytes, parsed: Any, name: str, *, own: bool) -> Encode:
        write, taken, convert = self._fastavro.schemaless_writer, self._class, model.convert
        assert taken is not None

        def encode_model(data: Any) -> bytes:
            if not isinstance(data, taken):
                raise SerializationException(f"{name} takes {taken.__name__}, not {type(data).__name__}")
            try:
                converted = convert(data)
            except Exception as error:
                raise unfit(f"the data does not fit {name}", error) from error
            return encode(converted)

        def encode_plain(data: Any) -> bytes:
            if not isinstance(data, taken):
                raise SerializationException(f"{name} takes {taken.__name__}, not {type(data).__name__}")
            stream = BytesIO()
            stream.write(head)
            try:
                # Not checked for fields that the schema lacks: it has all, and others are no fields of the class.
                write(stream, parsed, data.__dict__)
            except Exception as error:
                raise self._unfit(name, parsed, data.__dict__, error) from error
            return stream.getvalue()

        return encode_plain if model.plain and own else encode_model

    def _unfit(self, name: str, parsed: Any, data: Any, error: Exception) -> SerializationException:
        """The error of a record that fastavro does not write: its validation often finds the field."""
        library = self._fastavro.validation
        try:
            library.validate(data, parsed, raise_errors=True)
        except library.ValidationError as found:
            return SerializationException(f"the data does not fit {name}: {'; '.join(map(_said, found.errors))}")
        except Exception:
            pass  # the error that there is will do
        return unfit(f"the data does not fit {name}", error)


class AvroDeserializer(SchemaDeserializer[Any]):
    """Reads what Avro serializers of a registry write, as fastavro reads it: dicts, lists, numbers, text and so on.

    With a ``reader_schema``, which may be that of a dataclass or pydantic model, data that was written with another
    version of the schema is resolved to it.
    """

    schema_type = "AVRO"

    def __init__(self, registry: SchemaRegistryClient, reader_schema: AvroSchema | type[Any] | None = None) -> None:
        super().__init__(registry)
        check_schema(reader_schema)
        self._fastavro = fastavro()
        if isinstance(reader_schema, type):
            reader_schema = avro_model(reader_schema).schema
        self._reader: Schema | None = None if reader_schema is None else _schema(reader_schema)

    async def _decoder(self, schema: Schema) -> Callable[[bytes], Any]:
        written = await parsed_schema(self.registry, schema)
        wanted = None if self._reader is None else await parsed_schema(self.registry, self._reader)
        read = self._fastavro.schemaless_reader

        def decode(data: bytes) -> Any:
            stream = BytesIO(data)
            stream.seek(LENGTH)
            found = read(stream, written, wanted)
            if stream.tell() != len(data):
                raise SerializationException(f"{len(data) - stream.tell()} bytes are left over behind the Avro data")
            return found

        return decode


async def parsed_schema(registry: SchemaRegistryClient, schema: Schema) -> Any:
    """The schema as fastavro wants it, with all that it refers to."""
    named: dict[str, Any] = {}
    for each in (await referenced(registry, schema)).values():
        _parsed(_read(each.text), named)
    return _parsed(_read(schema.text), named)


def _parsed(raw: Any, named: dict[str, Any]) -> Any:
    library = fastavro()
    try:
        return library.parse_schema(raw, named_schemas=named)
    except Exception as error:
        raise IllegalArgumentException(f"the Avro schema cannot be used: {type(error).__name__}: {error}") from error


def _said(error: Any) -> str:
    """A ValidationErrorData of fastavro in words."""
    where = f"{error.field} is " if error.field else "it is "
    return f"{where}{error.datum!r:.100}, and must be {type_in_words(error.schema)}"


def _schema(given: Any) -> Schema:
    if isinstance(given, Schema):
        if given.type != "AVRO":
            raise IllegalArgumentException(f"the schema is one of {given.type}, and not of AVRO")
        return given
    return Schema(given if isinstance(given, str) else json.dumps(given))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IllegalArgumentException(f"the Avro schema is no JSON: {error}") from None


def _full_name(raw: Any) -> str:
    """Of a record, an enum or a fixed; empty for all else."""
    if not isinstance(raw, dict) or not isinstance(name := raw.get("name"), str):
        return ""
    return f"{raw['namespace']}.{name}" if raw.get("namespace") and "." not in name else name


def fastavro() -> ModuleType:
    """The library; ConfigException says how to get it."""
    try:
        import fastavro
        import fastavro.validation
    except ImportError as missing:
        raise ConfigException(
            "Avro is written by the library fastavro: pip install 'aioproducer[schema-registry-avro]'", name="schema"
        ) from missing
    return fastavro
