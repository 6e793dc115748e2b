"""The smallest things on the wire, and the checks that keep a hostile length from costing memory.

Fixed-width values are read and written by ``struct`` in the compiled functions; what is here is what those functions
call for everything with a length. What it raises is ``SchemaException``, or ``IndexError`` where the data simply ends;
the codec adds the message, the field and the position to both.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import NoReturn
from uuid import UUID

from aioproducer.errors import SchemaException, UnsupportedVersionException
from aioproducer.protocol.text_check import MAX_STRING_LENGTH

Buffer = bytes | bytearray | memoryview

MAX_LENGTH = 0x7FFFFFFF
"""What Kafka, counting in 32-bit integers, can mean by a length, a count or a tag."""

MAX_TAGGED_FIELDS = 1000
"""Of one struct. Kafka has no such limit: each takes it a hundred times the two bytes that a client has to send."""

ZERO_UUID = UUID(int=0)
"""Kafka's way to say "no id"."""


def read_uvarint(data: Buffer, pos: int) -> tuple[int, int]:
    """An unsigned varint: at most five bytes, seven bits each, the lowest first; no more than ``MAX_LENGTH``."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > MAX_LENGTH:
                break
            return value, pos
    raise SchemaException("unsigned varint overflows 31 bits")


def write_uvarint(out: bytearray, value: int) -> None:
    """Appends ``value`` (0 to ``MAX_LENGTH``) as an unsigned varint."""
    if not 0 <= value <= MAX_LENGTH:
        raise SchemaException(f"{value} does not fit an unsigned varint")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


@lru_cache(maxsize=1024)
def to_uuid(raw: bytes) -> UUID:
    """16 bytes as a UUID. Those of topics come again with every answer, and to make one takes microseconds."""
    return UUID(bytes=raw)


def reject_length(length: int, left: int, least: int = 1) -> NoReturn:
    """Says why ``length`` items of at least ``least`` bytes each cannot stand in the ``left`` bytes that remain."""
    if length == -1:
        raise SchemaException("null where it is not allowed")
    if length < 0:
        raise SchemaException(f"negative length {length}")
    if length * least > left:
        raise SchemaException(f"{length} times {least} bytes or more announced, {left} bytes left")
    raise SchemaException(f"a string of {length} bytes, {MAX_STRING_LENGTH} are allowed")


def reject_tag(tag: int, last: int) -> NoReturn:
    """Says why tagged field ``tag`` cannot stand after tagged field ``last``."""
    if tag <= last:
        raise SchemaException(f"tagged field {tag} after tagged field {last}")
    raise SchemaException(f"tagged field {tag} does not belong to this version")


def reject_elements() -> NoReturn:
    """The arrays of a message have more elements than it may have."""
    raise SchemaException("the message has more elements than are allowed")


def reject_tags(count: int) -> NoReturn:
    """Says that a struct has too many tagged fields."""
    raise SchemaException(f"{count} tagged fields in one struct, {MAX_TAGGED_FIELDS} are allowed")


def reject_end(pos: int, end: int) -> NoReturn:
    """Says that the value of a tagged field did not end where its size said."""
    raise SchemaException(f"tagged field ends at byte {pos}, its size said {end}")


def own_tagged_fields(unknown: Mapping[int, bytes], declared: Container[int]) -> dict[int, Buffer]:
    """A copy of a struct's unknown tagged fields, to add the declared ones to."""
    for tag in unknown:
        if tag in declared:
            raise SchemaException(f"tagged field {tag} is declared, and among the unknown ones too")
    return dict(unknown)


def write_tagged_fields(out: bytearray, values: Mapping[int, Buffer]) -> None:
    """Appends a struct's tagged fields in the order of their tags (KIP-482)."""
    write_uvarint(out, len(values))
    for tag in sorted(values):
        value = values[tag]
        write_uvarint(out, tag)
        write_uvarint(out, len(value))
        out += value


def record_buffers(value: Buffer | Sequence[Buffer]) -> tuple[list[bytes | memoryview], int]:
    """The buffers of a ``records`` value, as they are, and their bytes in total."""
    buffers: list[bytes | memoryview] = []
    total = 0
    for buffer in (value,) if isinstance(value, Buffer) else value:
        part = buffer if isinstance(buffer, bytes) else memoryview(buffer).cast("B")
        buffers.append(part)
        total += len(part)
    return buffers, total


def refuse_field(message: str, version: int, field: str) -> NoReturn:
    """Says that the version of the message cannot carry the value that this field has."""
    raise UnsupportedVersionException(f"{message} v{version} has no {field}, which is set and may not be dropped")
