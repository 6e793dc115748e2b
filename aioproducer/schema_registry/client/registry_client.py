"""The client of a schema registry with Confluent's API."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, TypeVar, Unpack, cast
from urllib.parse import quote

from aioproducer.config_types import RegistryOptions
from aioproducer.errors import IllegalArgumentException
from aioproducer.schema_registry.avro_differences import avro_differences
from aioproducer.schema_registry.client.registry_config import registry_config
from aioproducer.schema_registry.client.registry_requests import RegistryRequests
from aioproducer.schema_registry.client.single_flight import SingleFlight
from aioproducer.schema_registry.errors import (
    IncompatibleSchemaException,
    SchemaNotFoundException,
    SchemaRegistryException,
)
from aioproducer.schema_registry.schema import CompatibilityLevel, RegisteredSchema, Schema, SchemaReference, SchemaType

CACHED: Final = 1000
"""Schemas by id, and registered schemas, that are kept; then the oldest is forgotten."""

T = TypeVar("T")


class SchemaRegistryClient:
    """Registers and finds schemas. What cannot change is cached: ids, schemas by id, versions by number.

    ::

        registry = SchemaRegistryClient("https://registry:8081", basic_auth_user_info="user:password")

    ``config`` takes the names of Confluent's clients, in snake_case or dotted, also with the prefix
    ``schema.registry.ssl.``; ConfigException names a wrong one. Each request has a connection of its own, so there is
    nothing to close, and any event loop, thread and process may use the client. A request ends within
    ``(max.retries + 1)`` times the time-outs of all URLs, plus the waits between. Then it raises
    SchemaRegistryUnavailableException; what the registry refuses is another SchemaRegistryException.
    """

    def __init__(self, schema_registry_url: str | Sequence[str], **config: Unpack[RegistryOptions]) -> None:
        checked = registry_config({"schema_registry_url": schema_registry_url, **config})
        self._requests = RegistryRequests(checked)
        self._flight = SingleFlight()
        self._registered: dict[Hashable, RegisteredSchema] = {}
        self._versions: dict[Hashable, RegisteredSchema] = {}
        self._schemas: dict[Hashable, Schema] = {}

    def __repr__(self) -> str:
        return f"SchemaRegistryClient({','.join(self._requests.urls)!r})"

    async def register_schema(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Makes it a version of the subject, unless it is one already.

        Raises IncompatibleSchemaException, which says what differs, and InvalidSchemaException.
        """

        async def register() -> RegisteredSchema:
            path = f"/subjects/{_quoted(subject)}/versions{_normalize(normalize)}"
            try:
                answer = await self._requests.post(path, _body(schema))
            except IncompatibleSchemaException as error:
                raise await self._explained(error, subject, schema) from None
            except SchemaRegistryException as error:
                raise _about(error, f"the schema of {subject!r} was not registered") from None
            version = answer.get("version") if isinstance(answer, dict) else None
            return RegisteredSchema(_id(answer), subject, version if isinstance(version, int) else None, schema)

        return await self._cached(self._registered, ("register", subject, schema, normalize), register)

    async def lookup_schema(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The version of the subject that has this schema; SchemaNotFoundException if none has."""

        async def look_up() -> RegisteredSchema:
            path = f"/subjects/{_quoted(subject)}{_normalize(normalize)}"
            try:
                return _registered(await self._requests.post(path, _body(schema)), schema)
            except SchemaRegistryException as error:
                raise _about(error, f"the schema is no version of {subject!r}") from None

        return await self._cached(self._registered, ("look up", subject, schema, normalize), look_up)

    async def get_schema(self, schema_id: int, *, format: str | None = None) -> Schema:
        """The schema with this id.

        With the ``format`` "serialized", Protobuf is a FileDescriptorProto in base64 if the registry knows formats.
        """

        async def get() -> Schema:
            return _schema(await self._requests.get(f"/schemas/ids/{schema_id}{_format(format)}"))

        return await self._cached(self._schemas, (schema_id, format), get)

    async def get_version(self, subject: str, version: int) -> RegisteredSchema:
        """A version of the subject."""

        async def get() -> RegisteredSchema:
            return await self._version(subject, str(version), None)

        return await self._cached(self._versions, (subject, version), get)

    async def get_latest_version(self, subject: str, *, format: str | None = None) -> RegisteredSchema:
        """The latest version of the subject at present, which is not cached; ``format`` as for :meth:`get_schema`."""
        return await self._version(subject, "latest", format)

    async def get_subjects(self) -> list[str]:
        """All subjects."""
        return [name for name in _list(await self._requests.get("/subjects")) if isinstance(name, str)]

    async def get_versions(self, subject: str) -> list[int]:
        """The numbers of the subject's versions."""
        found = await self._requests.get(f"/subjects/{_quoted(subject)}/versions")
        return [number for number in _list(found) if isinstance(number, int)]

    async def test_compatibility(self, subject: str, schema: Schema) -> list[str]:
        """Why the schema could not become the next version, in the registry's words; empty if it could."""
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/latest?verbose=true"
        answer = _mapping(await self._requests.post(path, _body(schema)))
        if answer.get("is_compatible") is True:
            return []
        messages = answer.get("messages")
        said = messages if isinstance(messages, list) and messages else [answer.get("reason") or "it is not compatible"]
        return [str(one) for one in said]

    async def get_compatibility(self, subject: str | None = None) -> CompatibilityLevel:
        """What the registry demands of new versions: of this subject, or of all that have no level of their own."""
        path = "/config" if subject is None else f"/config/{_quoted(subject)}?defaultToGlobal=true"
        answer = _mapping(await self._requests.get(path))
        level = answer.get("compatibilityLevel") or answer.get("compatibility")
        return cast(CompatibilityLevel, str(level))

    async def set_compatibility(self, level: CompatibilityLevel, subject: str | None = None) -> None:
        """Sets it."""
        path = "/config" if subject is None else f"/config/{_quoted(subject)}"
        await self._requests.put(path, {"compatibility": level})

    async def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Deletes all versions and returns their numbers. ``permanent`` is possible after a deletion that was not."""
        deleted = await self._requests.delete(f"/subjects/{_quoted(subject)}{'?permanent=true' if permanent else ''}")
        for cache in (self._registered, self._versions):
            for key in [key for key, found in cache.items() if found.subject == subject]:
                del cache[key]
        return [number for number in _list(deleted) if isinstance(number, int)]

    async def _version(self, subject: str, version: str, format: str | None) -> RegisteredSchema:
        path = f"/subjects/{_quoted(subject)}/versions/{version}{_format(format)}"
        try:
            return _registered(await self._requests.get(path))
        except SchemaNotFoundException as error:
            raise _about(error, f"{subject!r} has no version {version}") from None

    async def _cached(self, cache: dict[Hashable, T], key: Hashable, make: Any) -> T:
        if (known := cache.get(key)) is not None:
            return known
        found: T = await self._flight.result(key, make)
        if len(cache) >= CACHED:
            cache.pop(next(iter(cache)), None)
        cache[key] = found
        return found

    async def _explained(
        self, error: IncompatibleSchemaException, subject: str, schema: Schema
    ) -> IncompatibleSchemaException:
        """The error with the version that is in the way, and what differs from it, as far as they can be found."""
        version, differences, level = None, [], ""
        try:
            latest = await self.get_latest_version(subject)
            version = latest.version
            if schema.type == latest.schema.type == "AVRO":
                differences = avro_differences(latest.schema.text, schema.text)
            if (found := await self.get_compatibility(subject)) != "NONE":  # which Apicurio says of the general level
                level = f" ({found})"
        except SchemaRegistryException:
            pass  # the refusal itself is said anyway
        which = "its versions" if version is None else f"its latest version, {version}"
        what = f": {'; '.join(differences)}" if differences else ""
        return IncompatibleSchemaException(
            f"the schema cannot become a version of {subject!r}, because it is not compatible{level} with"
            f" {which}{what}. {error}",
            status=error.status,
            error_code=error.error_code,
            subject=subject,
            version=version,
            differences=differences,
        )


def _quoted(subject: str) -> str:
    if not subject:
        raise IllegalArgumentException(f"the subject is {subject!r:.100}; it must not be empty")
    return quote(subject, safe="")


def _normalize(normalize: bool) -> str:
    return "?normalize=true" if normalize else ""


def _format(format: str | None) -> str:
    return "" if format is None else f"?format={quote(format, safe='')}"


def _about(error: SchemaRegistryException, what: str) -> SchemaRegistryException:
    """The same error, with what it is about."""
    return type(error)(f"{what}: {error}", status=error.status, error_code=error.error_code)


def _body(schema: Schema) -> dict[str, Any]:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.type != "AVRO":
        body["schemaType"] = schema.type
    if schema.references:
        body["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references
        ]
    return body


def _mapping(answer: Any) -> Mapping[str, Any]:
    if not isinstance(answer, dict):
        raise SchemaRegistryException(f"the schema registry answered with {answer!r:.100} and not with an object")
    return answer


def _list(answer: Any) -> list[Any]:
    if not isinstance(answer, list):
        raise SchemaRegistryException(f"the schema registry answered with {answer!r:.100} and not with a list")
    return answer


def _id(answer: Any) -> int:
    found = _mapping(answer).get("id")
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**31:
        raise SchemaRegistryException(f"the schema registry answered with the id {found!r:.100}")
    return found


def _registered(answer: Any, schema: Schema | None = None) -> RegisteredSchema:
    mapping = _mapping(answer)
    subject, version = mapping.get("subject"), mapping.get("version")
    if not isinstance(subject, str) or not isinstance(version, int):
        raise SchemaRegistryException("the schema registry answered without subject and version")
    return RegisteredSchema(_id(answer), subject, version, _schema(answer) if schema is None else schema)


def _schema(answer: Any) -> Schema:
    mapping = _mapping(answer)
    text, kind = mapping.get("schema"), mapping.get("schemaType") or "AVRO"
    if not isinstance(text, str) or kind not in ("AVRO", "JSON", "PROTOBUF"):
        raise SchemaRegistryException(
            f"the schema registry answered without a schema, or with one of type {kind!r:.100}"
        )
    return Schema(text, cast(SchemaType, kind), tuple(map(_reference, mapping.get("references") or ())))


def _reference(given: Any) -> SchemaReference:
    name, subject, version = (_mapping(given).get(part) for part in ("name", "subject", "version"))
    if not isinstance(name, str) or not isinstance(subject, str) or not isinstance(version, int):
        raise SchemaRegistryException(f"the schema registry answered with the reference {given!r:.100}")
    return SchemaReference(name, subject, version)
