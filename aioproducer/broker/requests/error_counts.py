"""Counts the error codes in a response."""

from __future__ import annotations

from collections.abc import Generator
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


_STRUCTS_AT_ONCE = 100


def counting_errors(response: Struct) -> Generator[None, None, dict[int, int]]:
    """As :func:`error_counts`, of a large response: it yields wherever other work may be done first."""
    counts: dict[int, int] = {}
    yield from _counting(response, counts)
    return counts


def _counting(struct: Any, counts: dict[int, int]) -> Generator[None, None, None]:
    codes = _codes(struct.__class__)
    if codes.own:
        counts[struct.error_code] = counts.get(struct.error_code, 0) + 1
    for name in codes.within:
        value = getattr(struct, name)
        for number, one in enumerate([value] if isinstance(value, Struct) else value or (), start=1):
            if _codes(one.__class__).within:
                yield from _counting(one, counts)
            else:
                _count(one, counts)
            if number % _STRUCTS_AT_ONCE == 0:
                yield
    yield


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
