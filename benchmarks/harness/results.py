"""The file with the figures: JSON with one line for each run, so that two files can be compared.

It has only measured values. Tables, ratios and verdicts are computed when it is read (``python -m benchmarks report``).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

LINE = 600
"""A value with at most this many characters is in one line."""
DIGITS = 6
"""Significant digits of a figure: no clock here is more precise."""


def write(path: Path, results: dict[str, Any]) -> None:
    """Replaces the file in one step, so that an interrupted run leaves a whole file."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(_text(_rounded(results)) + "\n", encoding="utf-8")
    unfinished.replace(path)


def read(path: Path) -> dict[str, Any]:
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results


def read_as(kind: type[T], path: Path) -> T:
    """The dataclass ``kind`` of which ``asdict`` was written."""
    return cast(T, restored(kind, read(path)))


def restored(kind: Any, found: Any) -> Any:
    """A value of this type, from what JSON has made of it: dataclasses, with those in their fields and lists.

    Fields may be None.
    """
    if isinstance(kind, UnionType) and found is not None:
        kind = next(of for of in get_args(kind) if of is not NoneType)
    if dataclasses.is_dataclass(kind):
        types = get_type_hints(kind)
        return cast(Any, kind)(**{name: restored(types[name], value) for name, value in found.items()})
    if get_origin(kind) in (list, Sequence):
        (of,) = get_args(kind)
        return [restored(of, one) for one in found]
    return found


def _text(value: Any, indent: str = "") -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) <= LINE or not isinstance(value, dict | list):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_text(item, inner)}" for name, item in value.items()]
        return "{\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _text(item, inner) for item in value) + f"\n{indent}]"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
