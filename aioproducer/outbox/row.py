"""A row of the outbox table, and the record that it becomes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aioproducer.errors import IllegalArgumentException, SerializationException
from aioproducer.types import ProducerRecord


class Page(NamedTuple):
    """Rows in the order of their ids. The statement that read them also says whether the page is the last one."""

    rows: Sequence[Row]
    more: bool
    """Whether the window has a row after these: never judged from the sizes of the rows that were read."""


class Row(NamedTuple):
    """A row as the relay reads it."""

    id: int
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: str | None
    """JSON: an object, or a list of pairs; null or text for a value, or {"base64": text}."""
    created_ms: int

    def record(self) -> ProducerRecord[Any, Any]:
        """The record; SerializationException if the headers are not of the documented form."""
        record = self.bare_record()
        return record if self.headers is None else record._replace(headers=headers_of(self.headers))

    def bare_record(self) -> ProducerRecord[Any, Any]:
        """The record without its headers."""
        return ProducerRecord(self.topic, self.value, self.key, self.partition, self.created_ms)


def headers_of(text: str) -> list[tuple[str, bytes | None]]:
    """A record's headers from their JSON; SerializationException if it has another form."""
    try:
        found = json.loads(text)
        pairs = found.items() if isinstance(found, dict) else map(_pair, found)
        return [(_name(name), _bytes(value)) for name, value in pairs]
    # Python reads neither what is nested a thousand times, nor a number of 4,301 digits; jsonb has both.
    except (TypeError, ValueError, RecursionError) as error:
        raise SerializationException(
            'the headers of a row are an object, or a list of pairs; each value is a text, null or {"base64": "…"}'
        ) from error


def as_json(headers: Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]) -> Any:
    """Headers in the form of the column: an object if no name is there twice, else a list of pairs."""
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    written = []
    pair: Any
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], str | bytes | None):
            raise IllegalArgumentException(
                f"{pair!r} is no header: it must be a pair of a text, and bytes, a text or None"
            )
        written.append((pair[0], _written(pair[1])))
    once = dict(written)
    return once if len(once) == len(written) else written


def _written(value: str | bytes | None) -> str | dict[str, str] | None:
    if not isinstance(value, bytes):
        return value
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = "\0"
    return {"base64": base64.b64encode(value).decode()} if "\0" in text else text  # jsonb has no NUL


def _pair(found: Any) -> list[Any]:
    if not isinstance(found, list):  # a text or an object may have two elements, too
        raise TypeError(f"a header is {found!r}")
    return found


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a header is {name!r}")
    return name


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"}:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except binascii.Error as error:
            raise ValueError("no base64") from error
    raise TypeError(f"the value of a header is {value!r}")
