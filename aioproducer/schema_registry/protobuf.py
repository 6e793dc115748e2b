"""Protobuf: messages of classes that protoc has generated."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from aioproducer.errors import ConfigException, IllegalArgumentException, SerializationException
from aioproducer.schema_registry.client.registry_client import SchemaRegistryClient
from aioproducer.schema_registry.deserializer import SchemaDeserializer
from aioproducer.schema_registry.schema import Schema, SchemaReference
from aioproducer.schema_registry.serializer import Encode, SchemaSerializer, SerializerOptions, unfit
from aioproducer.schema_registry.wire_format import prefix, read_message_indexes

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FileDescriptor
    from google.protobuf.message import Message

    M = TypeVar("M", bound=Message)
else:
    M = TypeVar("M")

_KNOWN = ("google/protobuf/", "google/type/", "confluent/")
"""Files that every registry has."""


class ProtobufSerializer(SchemaSerializer[M], Generic[M]):
    """Writes messages of the class ``message``.

    Its file is registered, and each file that it imports under the subject of its path, as a FileDescriptorProto in
    base64.
    """

    schema_type = "PROTOBUF"
    schema_format = "serialized"

    def __init__(self, registry: SchemaRegistryClient, message: type[M], **options: Unpack[SerializerOptions]) -> None:
        super().__init__(registry, **options)
        self._class = message
        self._descriptor = _descriptor(message)

    async def _encoder(self, topic: str) -> Encode:
        descriptor, message = self._descriptor, self._class
        schema = await self._schema_of(descriptor.file)
        found = await self._registered(topic, descriptor.full_name, schema)
        # Of a registry that has the text of the file, the own file must do.
        indexes = _indexes(found.schema, descriptor) or _indexes(schema, descriptor)
        assert indexes is not None
        head = prefix(found.id, indexes)

        def encode(data: Any) -> bytes:
            if data.__class__ is not message and not isinstance(data, message):
                raise SerializationException(f"the serializer takes {descriptor.full_name}, not {type(data).__name__}")
            try:
                made: bytes = head + data.SerializeToString()
            except Exception as error:
                raise unfit(f"the message {descriptor.full_name} cannot be written", error) from error
            return made

        return encode

    async def _schema_of(self, file: FileDescriptor) -> Schema:
        """The file with its imports, which are registered or looked up first if the file is."""
        references = []
        if self._schema_id is None and not self._latest:
            for imported in file.dependencies:
                if imported.name.startswith(_KNOWN):
                    continue
                schema = await self._schema_of(imported)
                subject = imported.name
                if self._registers:
                    await self.registry.register_schema(subject, schema, normalize=self._normalizes)
                known = await self.registry.lookup_schema(subject, schema, normalize=self._normalizes)
                assert known.version is not None
                references.append(SchemaReference(imported.name, subject, known.version))
        return Schema(base64.b64encode(file.serialized_pb).decode(), "PROTOBUF", tuple(references))


class ProtobufDeserializer(SchemaDeserializer[M], Generic[M]):
    """Reads messages of the class ``message``. Another message of the same schema raises SerializationException, as far
    as the registry can say which one it is."""

    schema_type = "PROTOBUF"
    schema_format = "serialized"

    def __init__(self, registry: SchemaRegistryClient, message: type[M]) -> None:
        super().__init__(registry)
        self._class = message
        self._descriptor = _descriptor(message)

    async def _decoder(self, schema: Schema) -> Callable[[bytes], M]:
        names, wanted, message = message_names(schema), self._descriptor.full_name, self._class

        def decode(data: bytes) -> M:
            indexes, position = read_message_indexes(data)
            if names is not None and (name := names.get(tuple(indexes))) != wanted:
                raise SerializationException(f"the data is the message {name or indexes}, and not {wanted}")
            read: M = message.FromString(data[position:])
            return read

        return decode


def _indexes(schema: Schema, descriptor: Descriptor) -> tuple[int, ...] | None:
    """Where the message is in its file; None if the schema is text."""
    names = message_names(schema)
    if names is None:
        return None
    for indexes, name in names.items():
        if name == descriptor.full_name:
            return indexes
    raise SerializationException(f"the registry's schema has no message {descriptor.full_name}")


def message_names(schema: Schema) -> dict[tuple[int, ...], str] | None:
    """The full names of a file's messages by their indexes; None if the schema is text."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        file = FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    names: dict[tuple[int, ...], str] = {}

    def add(messages: Any, outer: str, above: tuple[int, ...]) -> None:
        for index, message in enumerate(messages):
            name = f"{outer}.{message.name}" if outer else message.name
            names[*above, index] = name
            add(message.nested_type, name, (*above, index))

    add(file.message_type, file.package, ())
    return names


def _descriptor(message: Any) -> Descriptor:
    try:
        from google.protobuf.message import Message
    except ImportError as missing:
        raise ConfigException(
            "Protobuf is written by the library protobuf: pip install 'aioproducer[schema-registry-protobuf]'",
            name="schema",
        ) from missing
    if not isinstance(message, type) or not issubclass(message, Message) or message is Message:
        raise IllegalArgumentException(f"{message!r:.100} is no class of messages that protoc has generated")
    found: Any = message
    descriptor: Descriptor = found.DESCRIPTOR
    return descriptor
