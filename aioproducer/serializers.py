"""Serializers for keys and values, byte for byte those of Apache Kafka (``org.apache.kafka.common.serialization``).

::

    KafkaProducer(bootstrap_servers=…, key_serializer=LongSerializer, value_serializer=StringSerializer)

Each is a callable from a value to its bytes. ``None`` stays ``None``; values of another type, or that do not fit, raise
SerializationException. Numbers are big-endian.

Serializers of your own may also be coroutines, to look up schemas, say (``docs/sending.md``).
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, overload, runtime_checkable

from aioproducer.errors import IllegalArgumentException, SerializationException
from aioproducer.types import D, Data

if TYPE_CHECKING:
    from uuid import UUID

__all__ = [
    "BooleanSerializer",
    "BytesSerializer",
    "DoubleSerializer",
    "FloatSerializer",
    "IntegerSerializer",
    "ListSerializer",
    "LongSerializer",
    "Serialized",
    "Serializer",
    "SerializerFunction",
    "SerializerLike",
    "ShortSerializer",
    "StringSerializer",
    "UUIDSerializer",
    "VoidSerializer",
]


Serialized = Data | None | Awaitable[Data | None]
"""What a serializer returns. An awaitable is awaited, before the serializer is called for any other record."""


@runtime_checkable
class Serializer(Protocol[D]):
    """A serializer that sees the topic and the headers as well (Kafka's ``Serializer``).

    ``headers`` is the record's own list, which may be appended to. ``data`` may be ``None``. ``serialize`` may be a
    coroutine function. A method ``close()``, if there is one, is called when the producer is closed. A serializer that
    needs only the data is simpler as a plain callable ``(data) -> bytes``, which never gets ``None``.
    """

    def serialize(self, topic: str, headers: list[tuple[str, bytes | None]], data: D | None, /) -> Serialized: ...


class SerializerFunction(Protocol[D]):
    """A plain callable: a function, or an object of most classes below. It is never called with ``None``.

    It may be a coroutine function, or return an awaitable now and then.
    """

    @overload
    def __call__(self, data: D, /) -> Serialized: ...

    # Matches whatever the other does. With two overloads, pyright does not take D's default for a lambda's parameter.
    @overload
    def __call__(self, data: Any, /) -> Serialized: ...


class _Lambda(Protocol):
    """Matches nothing. Because of it, pyright infers Any for the parameter of a lambda, as mypy does anyway."""

    def __call__(self, data: Any, /) -> Serialized: ...

    def _nothing_has_this(self) -> None: ...


class _ImportPath(Protocol[D]):
    """Matches a str, and D is ``object`` then: no checker knows what a serializer takes that is given by its path."""

    def isidentifier(self) -> bool: ...

    def __eq__(self, value: D, /) -> bool: ...  # type: ignore[override]


SerializerLike = (
    SerializerFunction[D] | Serializer[D] | type[SerializerFunction[D]] | type[Serializer[D]] | _ImportPath[D] | _Lambda
)
"""What ``key.serializer`` and ``value.serializer`` may be."""


class BytesSerializer:
    """Bytes as they are; a bytearray or memoryview is copied (Kafka's ByteArray-, ByteBuffer- and BytesSerializer)."""

    def __call__(self, data: Data | None) -> bytes | None:
        if data is None or isinstance(data, bytes):
            return data
        if isinstance(data, bytearray | memoryview):
            return bytes(data)
        raise _wrong_type(self, data, "bytes, bytearray or memoryview")


class _Encoding:
    """How text becomes bytes: any encoding that Python knows, with Java's byte order for UTF-16 and UTF-32."""

    def __init__(self, encoding: str = "utf-8") -> None:
        try:
            "".encode(encoding)
        except LookupError as error:
            raise IllegalArgumentException(f"encoding is {encoding!r}: {error}") from error
        self.encoding = encoding
        name = codecs.lookup(encoding).name
        # Java writes both big-endian, and only UTF-16 with a mark; Python uses the machine's order and marks both.
        self._codec = f"{name}-be" if name in ("utf-16", "utf-32") else encoding
        self._mark = codecs.BOM_UTF16_BE if name == "utf-16" else b""

    def _encode(self, text: str) -> bytes:
        try:
            made = text.encode(self._codec)
        except UnicodeError as error:
            raise SerializationException(f"the text cannot be encoded: {error}") from error
        return self._mark + made if made else made


class StringSerializer(_Encoding):
    """A str in ``encoding``. A character that it cannot encode raises; Java would write ``?``."""

    def __call__(self, data: str | None) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, str):
            raise _wrong_type(self, data, "str")
        return self._encode(data)


class _Number:
    """A number of fixed width, big-endian."""

    _layout: struct.Struct

    def __call__(self, data: int | None) -> bytes | None:
        given: object = data
        if data is None:
            return None
        if not isinstance(given, int) or isinstance(given, bool):
            raise _wrong_type(self, data, "int")
        try:
            return self._layout.pack(data)
        except struct.error as error:
            raise SerializationException(f"{data} does not fit into {self._layout.size * 8} bits") from error


class ShortSerializer(_Number):
    """An int as 2 bytes, two's complement."""

    _layout = struct.Struct(">h")


class IntegerSerializer(_Number):
    """An int as 4 bytes, two's complement."""

    _layout = struct.Struct(">i")


class LongSerializer(_Number):
    """An int as 8 bytes, two's complement."""

    _layout = struct.Struct(">q")


class _Real:
    """A float of fixed width, IEEE 754, big-endian; an int is taken for a float."""

    _layout: struct.Struct

    def __call__(self, data: float | None) -> bytes | None:
        given: object = data
        if data is None:
            return None
        if not isinstance(given, float | int) or isinstance(given, bool):
            raise _wrong_type(self, data, "float")
        try:
            return self._layout.pack(data)
        except (struct.error, OverflowError) as error:
            raise SerializationException(f"{data} does not fit into {self._layout.size * 8} bits") from error


class FloatSerializer(_Real):
    """A float as 4 bytes, IEEE 754, rounded to the nearest."""

    _layout = struct.Struct(">f")


class DoubleSerializer(_Real):
    """A float as 8 bytes, IEEE 754."""

    _layout = struct.Struct(">d")


class BooleanSerializer:
    """A bool as one byte, 1 or 0."""

    def __call__(self, data: bool | None) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, bool):
            raise _wrong_type(self, data, "bool")
        return b"\x01" if data else b"\x00"


class UUIDSerializer(_Encoding):
    """A UUID as text of 36 characters in ``encoding``."""

    def __call__(self, data: UUID | None) -> bytes | None:
        if data is None:
            return None
        from uuid import UUID  # importing it takes longer than importing this module

        if not isinstance(data, UUID):
            raise _wrong_type(self, data, "uuid.UUID")
        return self._encode(str(data))


class VoidSerializer:
    """Only ``None``, for records without keys, say."""

    def __call__(self, data: None) -> None:
        if data is not None:
            raise _wrong_type(self, data, "None")


_FIXED_WIDTH = (ShortSerializer, IntegerSerializer, LongSerializer, FloatSerializer, DoubleSerializer, UUIDSerializer)
_INT = struct.Struct(">i")


class ListSerializer(Generic[D]):
    """A list or tuple whose items ``inner`` serializes (KIP-466).

    Items of a fixed width (numbers and UUIDs of this module) are written without lengths, after a list of the positions
    of ``None``. Each of the others has its length before it, -1 for ``None``.
    """

    def __init__(self, inner: Callable[[D], bytes | None]) -> None:
        self._inner = inner
        self._fixed_width = type(inner) in _FIXED_WIDTH

    def __call__(self, data: Sequence[D | None] | None) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, list | tuple):
            raise _wrong_type(self, data, "list or tuple")
        return self._fixed(data) if self._fixed_width else self._variable(data)

    def _fixed(self, data: Sequence[D | None]) -> bytes:
        nulls = [index for index, item in enumerate(data) if item is None]
        counts = [_INT.pack(number) for number in (len(nulls), *nulls, len(data))]
        return b"".join([b"\x00", *counts, *(self._item(item) for item in data if item is not None)])

    def _variable(self, data: Sequence[D | None]) -> bytes:
        parts = [b"\x01", _INT.pack(len(data))]
        for item in data:
            if item is None:
                parts.append(_INT.pack(-1))
            else:
                made = self._item(item)
                parts += (_INT.pack(len(made)), made)
        return b"".join(parts)

    def _item(self, item: D) -> bytes:
        made = self._inner(item)
        if made is None:
            raise SerializationException(f"the inner serializer made None of a {type(item).__name__}; it must be bytes")
        return made


def _wrong_type(serializer: object, data: object, wanted: str) -> SerializationException:
    return SerializationException(f"{type(serializer).__name__} takes {wanted} or None, not {type(data).__name__}")
