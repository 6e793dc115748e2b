"""Schemas as a registry has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SchemaType = Literal["AVRO", "JSON", "PROTOBUF"]
CompatibilityLevel = Literal[
    "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE"
]


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A part of a schema that is registered by itself.

    ``name`` is what the schema calls it: the full name of an Avro type, the ``$ref`` of a JSON schema, the path in an
    ``import`` of Protobuf.
    """

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema, and what it refers to. Protobuf: a FileDescriptorProto in base64, or the text of a file."""

    text: str = field(repr=False)
    type: SchemaType = "AVRO"
    references: tuple[SchemaReference, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema of a subject. ``version`` is None if the registry has not said it."""

    id: int
    subject: str
    version: int | None
    schema: Schema
