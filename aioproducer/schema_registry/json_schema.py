"""JSON Schema: by pydantic for classes, and checked by jsonschema for dicts and the like."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Unpack, overload

from aioproducer.errors import ConfigException, IllegalArgumentException, SerializationException
from aioproducer.schema_registry.client.registry_client import SchemaRegistryClient
from aioproducer.schema_registry.deserializer import SchemaDeserializer
from aioproducer.schema_registry.references import referenced
from aioproducer.schema_registry.schema import Schema
from aioproducer.schema_registry.serializer import Encode, SchemaSerializer, SerializerOptions, check_schema, unfit
from aioproducer.schema_registry.wire_format import LENGTH, prefix
from aioproducer.types import D

JsonSchema = str | Schema | Mapping[str, Any]
"""The text of a schema, JSON that has been read, or a Schema, which may have references."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class JsonOptions(SerializerOptions, total=False):
    """What a serializer of JSON may be given besides."""

    json_fail_invalid_schema: bool
    """Data that the schema does not allow is an error. Default: true, but false for a class, whose objects fit."""


class JsonSchemaSerializer(SchemaSerializer[D]):
    """Writes JSON in UTF-8: dicts and the like by a ``schema``; or the objects of a pydantic model or dataclass, from
    which pydantic derives the schema, and which it writes.

    Without a ``schema``, ``use_latest_version`` or ``use_schema_id`` says which one is written with.
    """

    schema_type = "JSON"

    @overload
    def __init__(self, registry: SchemaRegistryClient, schema: type[D], **options: Unpack[JsonOptions]) -> None: ...

    @overload
    def __init__(
        self: JsonSchemaSerializer[Any],
        registry: SchemaRegistryClient,
        schema: JsonSchema | None = None,
        **options: Unpack[JsonOptions],
    ) -> None: ...

    def __init__(self, registry: SchemaRegistryClient, schema: Any = None, **options: Any) -> None:
        self._checks = options.pop("json_fail_invalid_schema", not isinstance(schema, type))
        super().__init__(registry, **options)
        check_schema(schema)
        self._class: type[Any] | None = None
        self._dump: Callable[[Any], bytes] = _dumped
        if isinstance(schema, type):
            adapter = _adapter(schema)
            self._class, self._dump = schema, _model_dumped(adapter)
            schema = {"$schema": _DRAFT, **_derived(adapter, schema)}
        self.schema: Schema | None = None if schema is None else _schema(schema)
        self._name = ""
        if self.schema is not None:
            raw = _read(self.schema.text)
            self._name = raw.get("title", "") if isinstance(raw, dict) else ""
            if self._checks:
                _validator_class(raw)

    async def _encoder(self, topic: str) -> Encode:
        found = await self._registered(topic, self._name, self.schema)
        head, dump, taken = prefix(found.id), self._dump, self._class
        name = f"the JSON schema {self._name or found.id}"
        check = await _checker(self.registry, found.schema, name) if self._checks else None

        def encode(data: Any) -> bytes:
            if taken is not None and not isinstance(data, taken):
                raise SerializationException(f"{name} takes {taken.__name__}, not {type(data).__name__}")
            try:
                made = dump(data)
            except Exception as error:
                raise unfit("the data cannot be written as JSON", error) from error
            if check is not None:
                check(data if taken is None else json.loads(made))
            return head + made

        return encode


class JsonSchemaDeserializer(SchemaDeserializer[Any]):
    """Reads what JSON serializers of a registry write: dicts, lists, numbers, text and so on.

    With ``json_fail_invalid_schema``, data that its schema does not allow raises SerializationException.
    """

    schema_type = "JSON"

    def __init__(self, registry: SchemaRegistryClient, *, json_fail_invalid_schema: bool = False) -> None:
        super().__init__(registry)
        self._checks = json_fail_invalid_schema

    async def _decoder(self, schema: Schema) -> Callable[[bytes], Any]:
        check = await _checker(self.registry, schema, "its JSON schema") if self._checks else None

        def decode(data: bytes) -> Any:
            found = json.loads(data[LENGTH:])
            if check is not None:
                check(found)
            return found

        return decode


def _dumped(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _model_dumped(adapter: Any) -> Callable[[Any], bytes]:
    def dump(data: Any) -> bytes:
        made: bytes = adapter.dump_json(data, by_alias=True, warnings="error")
        return made

    return dump


def _derived(adapter: Any, model: type[Any]) -> dict[str, Any]:
    try:
        made: dict[str, Any] = adapter.json_schema(by_alias=True, mode="serialization")
        return made
    except Exception as error:
        raise IllegalArgumentException(f"pydantic derives no JSON schema from {model.__name__}: {error}") from error


def _adapter(model: type[Any]) -> Any:
    try:
        import pydantic
    except ImportError as missing:
        raise ConfigException(
            "JSON of classes is written by the library pydantic: pip install 'aioproducer[schema-registry-json]'",
            name="schema",
        ) from missing
    try:
        return pydantic.TypeAdapter(model)
    except Exception as error:
        raise IllegalArgumentException(f"pydantic cannot write {model.__name__} as JSON: {error}") from error


async def _checker(registry: SchemaRegistryClient, schema: Schema, name: str) -> Callable[[Any], None]:
    """Raises SerializationException for data that the schema does not allow."""
    library = _jsonschema()
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT7

    found = await referenced(registry, schema)
    resources = [
        (name, Resource.from_contents(_read(each.text), default_specification=DRAFT7)) for name, each in found.items()
    ]
    raw = _read(schema.text)
    validator = _validator_class(raw)(raw, registry=Registry().with_resources(resources))

    def check(data: Any) -> None:
        try:
            error = library.exceptions.best_match(validator.iter_errors(data))
        except Exception as failed:  # such as a reference that leads nowhere
            raise unfit(f"{name} cannot be applied", failed) from failed
        if error is not None:
            where = f" at {error.json_path}" if error.path else ""
            raise SerializationException(f"the data does not fit {name}{where}: {error.message}")

    return check


def _validator_class(raw: Any) -> Any:
    library = _jsonschema()
    kind = library.validators.validator_for(raw, default=library.Draft7Validator)
    try:
        kind.check_schema(raw)
    except library.exceptions.SchemaError as error:
        raise IllegalArgumentException(f"the JSON schema cannot be used: {error.message}") from None
    return kind


def _jsonschema() -> Any:
    try:
        import jsonschema
    except ImportError as missing:
        raise ConfigException(
            "JSON is checked by the library jsonschema: pip install 'aioproducer[schema-registry-json]', or set"
            " json_fail_invalid_schema=False",
            name="json.fail.invalid.schema",
        ) from missing
    return jsonschema


def _schema(given: Any) -> Schema:
    if isinstance(given, Schema):
        if given.type != "JSON":
            raise IllegalArgumentException(f"the schema is one of {given.type}, and not of JSON")
        return given
    return Schema(given if isinstance(given, str) else json.dumps(given), "JSON")


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IllegalArgumentException(f"the JSON schema is no JSON: {error}") from None
