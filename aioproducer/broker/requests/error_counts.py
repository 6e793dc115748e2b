"""Counts the error codes in a response."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from aioproducer.protocol.schema import Array, Struct


class _Codes(NamedTuple):
    """The error codes of a struct: its own, and the fields with structs that contain error codes."""

    own: bool
    within: tuple[str, ...]


def error_counts(response: Struct) -> dict[int, int]:
    """How often it has each error code, ``NONE`` among them (Kafka's ``AbstractResponse.errorCounts``)."""
    counts: dict[int, int] = {}
    _count(response, counts)
    return counts


def _count(struct: Any, counts: dict[int, int]) -> None:
    codes = _codes(struct.__class__)
    if codes.own:
        counts[struct.error_code] = counts.get(struct.error_code, 0) + 1
    for name in codes.within:
        value = getattr(struct, name)
        if isinstance(value, Struct):
            _count(value, counts)
        else:
            for one in value or ():
                _count(one, counts)


@cache
def _codes(cls: type[Any]) -> _Codes:
    within = []
    for field in cls.FIELDS:
        type_ = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(type_, type) and any(_codes(type_)):
            within.append(field.name)
    return _Codes(any(field.name == "error_code" for field in cls.FIELDS), tuple(within))
