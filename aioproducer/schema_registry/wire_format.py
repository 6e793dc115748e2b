"""The bytes before a serialized key or value: a zero byte, the schema's id in 4 bytes, and for Protobuf which message.

This is the wire format of Confluent's serializers. An id in a header (``__value_schema_id``) is not supported.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aioproducer.errors import SerializationException

MAGIC = 0
LENGTH = 5
"""Bytes of magic and id."""

MOST_INDEXES = 100
"""Levels of nested messages that are read."""

_PREFIX = struct.Struct(">bi")


def prefix(schema_id: int, indexes: Sequence[int] = ()) -> bytes:
    """Magic and id, and the ``indexes`` of a Protobuf message if there are any."""
    return _PREFIX.pack(MAGIC, schema_id) + (message_indexes(indexes) if indexes else b"")


def message_indexes(indexes: Sequence[int]) -> bytes:
    """The position of a message in its file, from the outermost message inwards, as zigzag varints after their count.

    The first message of a file, [0], is a single zero byte.
    """
    if list(indexes) == [0]:
        return b"\x00"
    return b"".join(map(_varint, (len(indexes), *indexes)))


def schema_id_of(data: bytes) -> int:
    """The id that the data begins with, or SerializationException."""
    if len(data) < LENGTH:
        raise SerializationException(f"{len(data)} bytes have no schema id: a zero byte and an id take {LENGTH}")
    magic, schema_id = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise SerializationException(
            f"the data begins with byte {magic & 0xFF:#04x} and not with 0x00: no serializer of a schema registry wrote"
            " it, or one that puts the schema id into a header, which is not supported"
        )
    if schema_id < 0:
        raise SerializationException(f"the schema id is {schema_id}, which no registry gives")
    return int(schema_id)


def read_message_indexes(data: bytes, position: int = LENGTH) -> tuple[list[int], int]:
    """The indexes at this position, and the position after them; or SerializationException."""
    count, position = _read_varint(data, position)
    if count == 0:
        return [0], position
    if not 0 < count <= MOST_INDEXES:
        raise SerializationException(f"the data has {count} message indexes; 1 to {MOST_INDEXES} are possible")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(data, position)
        if index < 0:
            raise SerializationException(f"the data has the message index {index}")
        indexes.append(index)
    return indexes, position


def _varint(number: int) -> bytes:
    number <<= 1  # zigzag, and never negative
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if position >= len(data) or shift > 28:
            raise SerializationException("the data ends within its message indexes, or they are broken")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
