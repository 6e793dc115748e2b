"""The topics and partitions in a message, under any name that its API has for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar
from uuid import UUID

from aioproducer.protocol.schema import INT32, Array, Struct, Wire

_TOPIC_NAMES = ("name", "topic")
_INDEX_NAMES = ("index", "partition_index", "partition")
_INDEX_LISTS = ("partitions", "partition_indexes")
_ERRORS = ("error_code", "partition_error_code")

S = TypeVar("S", bound=Struct)

NameOf = Callable[[UUID], str | None]
"""The name of the topic with this id."""


class Entry(NamedTuple):
    """A struct of a message that is about a topic, or about one of its partitions.

    ``partition`` is None for the topic itself; ``struct`` is None where a request has only the partition's number.
    """

    topic: str
    partition: int | None
    struct: Struct | None


def entries(message: Struct, name_of: NameOf) -> Iterator[Entry]:
    """Everything in ``message`` that is about a topic or a partition."""
    for item in _items(message):
        topic = _topic(item, name_of)
        if topic is None:
            yield from entries(item, name_of)
            continue
        yield Entry(topic, None, item)
        for name in _INDEX_LISTS:
            for index in getattr(item, name, None) or ():
                if isinstance(index, int):
                    yield Entry(topic, index, None)
        for part in _items(item):
            index = next((getattr(part, name) for name in _INDEX_NAMES if hasattr(part, name)), None)
            if index is not None:
                yield Entry(topic, index, part)


def names_topics(cls: type[Struct]) -> bool:
    """Whether a message of this class can name a topic."""
    return any(_is_topic(element) or names_topics(element) for element in _elements(cls))


def names_partitions(cls: type[Struct]) -> bool:
    """Whether a message of this class can name a partition."""
    return any(
        _has_partitions(element) if _is_topic(element) else names_partitions(element) for element in _elements(cls)
    )


def with_error(request: Struct, response: type[S], code: int, version: int) -> S:
    """A response of this version that has an entry with this error for everything that ``request`` names.

    Request and response must have the same field names: see :func:`mirrors`.
    """
    made = response()
    for wire in response.FIELDS:
        element = _element(wire)
        if version not in wire.versions:
            continue
        if wire.name in _ERRORS:
            setattr(made, wire.name, code)
        elif not hasattr(request, wire.name):
            pass
        elif element is None:
            setattr(made, wire.name, getattr(request, wire.name))
        elif has_error(element):
            items = getattr(request, wire.name)
            setattr(made, wire.name, [with_error(item, element, code, version) for item in items])
    return made


def mirrors(request: type[Struct], response: type[Struct]) -> bool:
    """Whether ``request`` has a list of the same name for every list of ``response`` that contains errors."""
    theirs = {wire.name: _element(wire) for wire in request.FIELDS}
    for wire in response.FIELDS:
        element = _element(wire)
        if element is not None and has_error(element):
            other = theirs.get(wire.name)
            if other is None or not mirrors(other, element):
                return False
    return has_error(response)


def has_error(cls: type[Struct]) -> bool:
    """Whether a message of this class contains an error code anywhere."""
    return any(wire.name in _ERRORS for wire in cls.FIELDS) or any(map(has_error, _elements(cls)))


def set_errors(message: Struct, code: int, version: int) -> None:
    """Sets every error code that the message has in this version."""
    for wire in message.FIELDS:
        if wire.name in _ERRORS and version in wire.versions:
            setattr(message, wire.name, code)
    for item in _items(message):
        set_errors(item, code, version)


def _topic(item: Struct, name_of: NameOf) -> str | None:
    if not _is_topic(type(item)):
        return None
    for name in _TOPIC_NAMES:
        if topic := getattr(item, name, None):
            return str(topic)
    topic_id = getattr(item, "topic_id", None)
    return None if topic_id is None else name_of(topic_id)


def _is_topic(cls: type[Struct]) -> bool:
    """A name alone may be that of a config or of a group protocol; a topic also has partitions or an id."""
    names = {field.name for field in dataclasses.fields(cls)}
    return bool(names.intersection(_TOPIC_NAMES)) and (
        "topic_id" in names or "num_partitions" in names or "count" in names or _has_partitions(cls)
    )


def _has_partitions(cls: type[Struct]) -> bool:
    for wire in cls.FIELDS:
        if isinstance(wire.type, Array) and wire.type.element is INT32 and wire.name in _INDEX_LISTS:
            return True
    return any(wire.name in _INDEX_NAMES for element in _elements(cls) for wire in element.FIELDS if wire.type is INT32)


def _element(wire: Wire) -> type[Struct] | None:
    return wire.type.element if isinstance(wire.type, Array) and isinstance(wire.type.element, type) else None


def _elements(cls: type[Struct]) -> list[type[Struct]]:
    return [element for wire in cls.FIELDS if (element := _element(wire)) is not None]


def _items(message: Struct) -> Iterator[Struct]:
    for wire in message.FIELDS:
        if _element(wire) is not None:
            yield from getattr(message, wire.name) or ()
