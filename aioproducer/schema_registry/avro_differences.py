"""Differences between two Avro schemas, in plain words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

MOST: Final = 20
"""The most differences that are listed."""


def avro_differences(old: str, new: str) -> list[str]:
    """Sentences; none if a schema cannot be read, or if the difference is not one of fields, types or symbols."""
    try:
        found = list(_differences("", json.loads(old), json.loads(new)))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []  # this only explains an error, and the registry has read the schemas
    return [*found[:MOST], f"and {len(found) - MOST} more"] if len(found) > MOST else found


def _differences(where: str, old: Any, new: Any) -> Iterator[str]:
    old, new = _plain(old), _plain(new)
    kinds = type_in_words(old), type_in_words(new)
    if kinds[0] != kinds[1]:
        yield f"{_named(where)} is {kinds[1]}, and was {kinds[0]}"
    elif isinstance(old, Mapping):
        match old["type"]:
            case "record" | "error":
                yield from _of_record(where, old, new)
            case "enum":
                yield from _of_enum(where, old, new)
            case "array":
                yield from _differences(f"{where}[]", old["items"], new["items"])
            case "map":
                yield from _differences(f"{where}{{}}", old["values"], new["values"])


def _of_record(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = ({field["name"]: field for field in one["fields"]} for one in (old, new))
    for name, field in after.items():
        path = f"{where}.{name}" if where else name
        if name in before:
            yield from _differences(path, before[name]["type"], field["type"])
        elif "default" in field:
            yield f"the field {path!r} ({type_in_words(field['type'])}) is new"
        else:
            yield f"the field {path!r} ({type_in_words(field['type'])}) is new and has no default"
    for name, field in before.items():
        if name not in after:
            path = f"{where}.{name}" if where else name
            yield f"the field {path!r} is gone" + ("" if "default" in field else ", and had no default")


def _of_enum(where: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, after = old["symbols"], new["symbols"]
    if more := [symbol for symbol in after if symbol not in before]:
        yield f"{_named(where)} has the new symbols {', '.join(more)}"
    if less := [symbol for symbol in before if symbol not in after]:
        yield f"{_named(where)} has lost the symbols {', '.join(less)}"


def _named(where: str) -> str:
    return f"the field {where!r}" if where else "the schema"


def _plain(schema: Any) -> Any:
    """A primitive type as a str, also if it is written as an object."""
    if isinstance(schema, Mapping) and set(schema) == {"type"}:
        return _plain(schema["type"])
    return schema


def type_in_words(schema: Any) -> str:
    """An Avro type for a sentence."""
    schema = _plain(schema)
    if isinstance(schema, list):
        return "one of " + ", ".join(map(type_in_words, schema))
    if not isinstance(schema, Mapping):
        return str(schema)
    kind = schema["type"]
    if logical := schema.get("logicalType"):
        return f"{logical} ({kind})"
    name = schema.get("name")
    return f"{kind} {name}" if name else type_in_words(kind)
