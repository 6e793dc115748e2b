"""Turns a declared message into Python source: one flat function that reads a version of it, one that writes it.

What would otherwise be decided for every field of every message (is it in this version, compact, nullable, tagged)
is decided once; nested structs are inlined, and neighbouring fields of fixed size become one ``struct`` call. The walk
over the declaration is here; ``compile_reader`` and ``compile_writer`` say what each kind of field becomes. ``codec``
compiles on first use and keeps the functions.

Every line of source remembers which field it is about. Nothing is spent on errors while all goes well; when something
does raise, the line number says where in the message it happened.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from aioproducer.protocol import primitives
from aioproducer.protocol.schema import (
    NO_TAGGED_FIELDS,
    STRING,
    Array,
    Fixed,
    Message,
    Sized,
    Struct,
    Type,
    Wire,
)

Spans = tuple[tuple[str, int], ...]
"""The fields that a line of source is about, each with its size in bytes when that is fixed (else 0)."""


class Compiled(NamedTuple):
    """A function made from a declaration, and what its lines are about."""

    function: Callable[..., Any]
    spans: dict[int, Spans]


def minimum_size(type_: Type, version: int, flexible: bool) -> int:
    """The fewest bytes that a value of the type can take; a count is checked against it before it is used."""
    if isinstance(type_, Fixed):
        return type_.size
    if isinstance(type_, Array):
        return 1 if flexible else 4
    if isinstance(type_, Sized):
        return 1 if flexible else 2 if type_ is STRING else 4
    positional = (f for f in type_.FIELDS if version in f.versions and version not in f.tagged)
    return sum(minimum_size(f.type, version, flexible) for f in positional) + flexible


@cache
def _layout(codes: str) -> struct.Struct:
    return struct.Struct(">" + codes)


class Source(ABC):
    """Lines of a function under construction, and the names it uses."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.lines: list[str] = []
        self.spans: dict[int, Spans] = {}
        self.about: Spans = ()
        self.names: dict[str, Any] = {
            **vars(primitives),
            "NO_TAGGED_FIELDS": NO_TAGGED_FIELDS,
            "new": object.__new__,
            "pack": struct.pack,
            "unpack_from": struct.unpack_from,
        }
        self._indent = 1
        self._variables = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)
        self.spans[len(self.lines) + 1] = self.about  # the first line is the def

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self._indent += 1
        yield
        self._indent -= 1

    def variable(self, prefix: str) -> str:
        """A name not used before: structs of all depths share one function."""
        self._variables += 1
        return f"{prefix}{self._variables}"

    def constant(self, name: str, value: Any) -> str:
        known = self.names.setdefault(name, value)
        assert known == value
        return name

    def literal(self, value: Any) -> str:
        return "ZERO_UUID" if value is primitives.ZERO_UUID else repr(value)

    def flexible(self, wire: Wire | None = None) -> bool:
        versions = self.cls.FLEXIBLE_VERSIONS if wire is None or wire.flexible is None else wire.flexible
        return self.version in versions

    def packing(self, method: str, codes: str) -> str:
        return self.constant(f"{method}_{codes.replace('?', 'bool')}", getattr(_layout(codes), method))

    def struct(self, cls: type[Struct], var: str, path: str) -> None:
        """Goes through the fields of the struct that is in the variable ``var``."""
        run: list[tuple[Wire, Fixed]] = []
        tagged: list[Wire] = []
        for wire in cls.FIELDS:
            if self.version not in wire.versions:
                self.about = ((path + wire.name, 0),)
                self.absent(wire, f"{var}.{wire.name}")
            elif self.version in wire.tagged:
                tagged.append(wire)
            elif isinstance(wire.type, Fixed):
                run.append((wire, wire.type))
            else:
                self.flush(run, var, path)
                self.value(wire, f"{var}.{wire.name}", path + wire.name)
        self.flush(run, var, path)
        self.about = ((path + "tagged fields", 0),)
        self.tagged_fields(cls, tagged, var, path)

    def flush(self, run: list[tuple[Wire, Fixed]], var: str, path: str) -> None:
        if run:
            self.about = tuple((path + wire.name, type_.size) for wire, type_ in run)
            self.fixed([type_ for _, type_ in run], [f"{var}.{wire.name}" for wire, _ in run])
            run.clear()

    def value(self, wire: Wire, target: str, path: str) -> None:
        """One field, wherever it stands: among the positional ones or as a tagged field."""
        self.about = about = ((path, wire.type.size if isinstance(wire.type, Fixed) else 0),)
        nullable = self.version in wire.nullable
        if isinstance(wire.type, Fixed):
            self.fixed([wire.type], [target])
        elif isinstance(wire.type, Sized):
            self.sized(wire.type, target, nullable, self.flexible(wire))
        elif isinstance(wire.type, Array):
            self.array(wire.type.element, target, nullable, path)
        else:
            self.nested(wire.type, target, path)
        self.about = about

    def compile(self, name: str, parameters: str) -> Compiled:
        text = "\n".join([f"def {name}({parameters}):", *self.lines])
        filename = f"<{name} {self.cls.__name__} v{self.version}>"
        exec(compile(text, filename, "exec"), self.names)
        return Compiled(self.names[name], self.spans)

    @abstractmethod
    def absent(self, wire: Wire, target: str) -> None:
        """A field that this version does not have."""

    @abstractmethod
    def fixed(self, types: list[Fixed], targets: list[str]) -> None:
        """Neighbouring fields of fixed size."""

    @abstractmethod
    def sized(self, type_: Sized, target: str, nullable: bool, flexible: bool) -> None:
        """A string, bytes or records."""

    @abstractmethod
    def array(self, element: Fixed | Sized | type[Struct], target: str, nullable: bool, path: str) -> None:
        """An array."""

    @abstractmethod
    def nested(self, cls: type[Struct], target: str, path: str) -> None:
        """A struct inside the struct."""

    @abstractmethod
    def tagged_fields(self, cls: type[Struct], tagged: list[Wire], var: str, path: str) -> None:
        """The end of a struct in a flexible version; ``tagged`` are the declared fields that this version tags."""
