"""Avro schemas of dataclasses and pydantic models, and how their objects become what fastavro writes.

==============================================  ===================================================
Python                                          Avro
==============================================  ===================================================
``bool``, ``int``, ``float``, ``str``, ``bytes``  boolean, long, double, string, bytes
``datetime``, ``date``, ``time``                timestamp-micros, date, time-micros
``uuid.UUID``                                   string, uuid
``Decimal`` with ``max_digits`` (of pydantic)   bytes, decimal
``Enum``, ``Literal``                           enum of the names; the type of the values
``list``, ``tuple[X, ...]``, ``set``, …         array
``dict[str, X]``                                map
``X | None``, ``X | Y``                         union, the type of the default first
a dataclass or pydantic model                   record
``Annotated[X, AvroType(schema)]``              the schema
==============================================  ===================================================
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from aioproducer.errors import IllegalArgumentException

Convert = Callable[[Any], Any]
"""Makes what fastavro writes of a value."""

_NOTHING: Final = object()
_SIMPLE: Final[Mapping[Any, Any]] = {
    type(None): "null",
    None: "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "bytes",
    datetime: {"type": "long", "logicalType": "timestamp-micros"},
    date: {"type": "int", "logicalType": "date"},
    time: {"type": "long", "logicalType": "time-micros"},
    UUID: {"type": "string", "logicalType": "uuid"},
}
_ARRAYS: Final = (list, tuple, set, frozenset, Sequence, Set)
_MAPS: Final = (dict, Mapping)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class AvroType:
    """In ``Annotated[X, AvroType("int")]``: the Avro schema of X, whose values fastavro takes as they are."""

    schema: Any


@dataclass(frozen=True, slots=True)
class AvroModel:
    """``schema`` is the record's. ``convert`` makes a dict of an object; if ``plain``, its ``__dict__`` is one."""

    schema: dict[str, Any]
    convert: Convert
    plain: bool


def avro_schema(model: type[Any], namespace: str | None = None) -> dict[str, Any]:
    """The Avro schema of a dataclass or pydantic model. Raises IllegalArgumentException for a type that has none."""
    return avro_model(model, namespace).schema


def avro_model(model: type[Any], namespace: str | None = None) -> AvroModel:
    """The same, with how its objects are converted."""
    if not is_model(model):
        raise IllegalArgumentException(f"{model!r:.100} is neither a dataclass nor a pydantic model")
    return _Derivation(namespace).record(model)[0]


def is_model(kind: Any) -> bool:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields"))


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    attribute: str
    type: Any
    default: Any


@dataclass(frozen=True, slots=True)
class _Member:
    """One of a union: ``takes`` are the classes of its values; ``tag`` is the name of a record."""

    takes: tuple[type[Any], ...]
    schema: Any
    convert: Convert | None
    tag: str | None


class _Derivation:
    """Of one schema: each record and enum is written once, and named from then on."""

    def __init__(self, namespace: str | None) -> None:
        self._namespace = namespace
        self._named: dict[str, Any] = {}
        """By name, the class that it is of."""
        self._records: dict[type[Any], dict[str, Convert]] = {}
        """By class, its convert once it is known; a class may have fields of itself."""

    def record(self, model: type[Any]) -> tuple[AvroModel, str]:
        name = self._name(model)
        known: dict[str, Convert] = {}
        self._records[model] = known
        fields, converts = [], []
        for field in _fields(model):
            where = f"{model.__qualname__}.{field.attribute}"
            if not _NAME.fullmatch(field.name):
                raise IllegalArgumentException(f"{where} is called {field.name!r}, which is no name in Avro")
            schema, convert = self._type(field.type, where, field.default)
            default = _default(field.default, convert)
            fields.append({"name": field.name, "type": schema} | ({} if default is _NOTHING else {"default": default}))
            converts.append((field.name, field.attribute, convert))
        convert_record = known["convert"] = _of_record(converts)
        made: dict[str, Any] = {"type": "record", "name": name.rpartition(".")[2]}
        if self._namespace:
            made["namespace"] = self._namespace
        made["fields"] = fields
        plain = hasattr(model, "__dictoffset__") and model.__dictoffset__ != 0
        plain = plain and all(name == attribute and convert is None for name, attribute, convert in converts)
        return AvroModel(made, convert_record, plain), name

    def _name(self, kind: type[Any]) -> str:
        own = re.sub(r"\W+", "_", kind.__name__).strip("_")
        name = f"{self._namespace}.{own}" if self._namespace else own
        if self._named.setdefault(name, kind) is not kind:
            raise IllegalArgumentException(
                f"{self._named[name]!r} and {kind!r} have the same name in Avro, {name}: rename one of them"
            )
        return name

    def _type(self, kind: Any, where: str, default: Any = _NOTHING) -> tuple[Any, Convert | None]:
        extras: tuple[Any, ...] = ()
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            extras = tuple(more)
        for extra in extras:
            if isinstance(extra, AvroType):
                return extra.schema, None
        if isinstance(kind, typing.NewType):
            return self._type(kind.__supertype__, where, default)
        if kind in _SIMPLE:
            return _SIMPLE[kind], None
        if kind is Decimal:
            return _decimal(extras, where), None
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return self._union(arguments, where, default)
        if origin is Literal:
            return self._literal(arguments, where)
        if origin in _ARRAYS and (len(arguments) == 1 or (len(arguments) == 2 and arguments[1] is Ellipsis)):
            schema, convert = self._type(arguments[0], f"{where}[]")
            return {"type": "array", "items": schema}, _of_items(convert)
        if origin in _MAPS and len(arguments) == 2 and arguments[0] is str:
            schema, convert = self._type(arguments[1], f"{where}{{}}")
            return {"type": "map", "values": schema}, None if convert is None else _of_values(convert)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self._enum(kind, where)
        if is_model(kind):
            return self._nested(kind)
        raise IllegalArgumentException(
            f"{where} is of type {kind!r}, which has no type in Avro: annotate it, Annotated[…, AvroType(…)]"
        )

    def _nested(self, model: type[Any]) -> tuple[Any, Convert]:
        if (known := self._records.get(model)) is not None:
            return self._name(model), lambda data: known["convert"](data)
        made, _ = self.record(model)
        return made.schema, made.convert

    def _enum(self, kind: type[Enum], where: str) -> tuple[Any, Convert]:
        names = [member.name for member in kind]
        if bad := [name for name in names if not _NAME.fullmatch(name)]:
            raise IllegalArgumentException(f"{where}: {bad[0]!r} of {kind.__qualname__} is no symbol in Avro")
        name = f"{self._namespace}.{kind.__name__}" if self._namespace else kind.__name__
        if name in self._named:
            return self._name(kind), _enum_name
        self._name(kind)
        made: dict[str, Any] = {"type": "enum", "name": kind.__name__}
        if self._namespace:
            made["namespace"] = self._namespace
        return {**made, "symbols": names}, _enum_name

    def _literal(self, values: tuple[Any, ...], where: str) -> tuple[Any, Convert | None]:
        kinds = list(dict.fromkeys(type(value) for value in values))
        if len(kinds) != 1:
            raise IllegalArgumentException(f"{where} has literals of several types; Avro takes one")
        return self._type(kinds[0], where)

    def _union(self, arguments: tuple[Any, ...], where: str, default: Any) -> tuple[Any, Convert | None]:
        members = [self._member(argument, where) for argument in arguments]
        if default is not _NOTHING:  # Avro takes a default of the first type only
            members.sort(key=lambda member: not isinstance(default, member.takes))
        elif any(member.schema == "null" for member in members):
            members.sort(key=lambda member: member.schema != "null")
        needed = [member for member in members if member.convert is not None]
        return [member.schema for member in members], _of_union(needed) if needed else None

    def _member(self, argument: Any, where: str) -> _Member:
        schema, convert = self._type(argument, where)
        plain = get_args(argument)[0] if get_origin(argument) is Annotated else argument
        takes = _classes(plain)
        tag = None
        if is_model(plain):
            tag = self._name(plain)
        return _Member(takes, schema, convert, tag)


def _classes(kind: Any) -> tuple[type[Any], ...]:
    origin = get_origin(kind)
    if kind is None:
        return (type(None),)
    if origin is Literal:
        return tuple({type(value) for value in get_args(kind)})
    if isinstance(kind, typing.NewType):
        return _classes(kind.__supertype__)
    found = origin or kind
    return (found,) if isinstance(found, type) else ()


def _fields(model: type[Any]) -> list[_Field]:
    found = []
    if dataclasses.is_dataclass(model):
        try:
            hints = get_type_hints(model, include_extras=True)
        except NameError as error:
            raise IllegalArgumentException(
                f"the types of {model.__qualname__} are not known where it is defined: {error}"
            ) from error
        for each in dataclasses.fields(model):
            default = each.default
            if default is dataclasses.MISSING:
                default = _made(each.default_factory)
            found.append(_Field(each.name, each.name, hints[each.name], default))
        return found
    for name, info in model.model_fields.items():
        kind = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        default = _NOTHING if info.is_required() else info.default
        if info.default_factory is not None:
            default = _made(info.default_factory)
        found.append(_Field(info.serialization_alias or info.alias or name, name, kind, default))
    return found


def _made(factory: Any) -> Any:
    """The default that a factory makes, if it is always the same."""
    return factory() if factory in (list, dict, set, frozenset, tuple) else _NOTHING


def _default(default: Any, convert: Convert | None) -> Any:
    """A default as JSON, if it can be written as such."""
    if isinstance(default, Enum):
        return default.name
    if default is None or isinstance(default, bool | int | float | str):
        return default
    if isinstance(default, bytes):
        return default.decode("latin-1")
    if isinstance(default, list | tuple | set | frozenset) and not default:
        return []
    if isinstance(default, dict) and not default:
        return {}
    return _NOTHING


def _decimal(extras: tuple[Any, ...], where: str) -> Any:
    digits = next((extra.max_digits for extra in extras if getattr(extra, "max_digits", None)), None)
    places = next((extra.decimal_places for extra in extras if getattr(extra, "decimal_places", None)), 0)
    if digits is None:
        raise IllegalArgumentException(
            f"{where} is a Decimal of unknown size: annotate it with pydantic's Field(max_digits=…, decimal_places=…),"
            ' or with AvroType({"type": "bytes", "logicalType": "decimal", "precision": …, "scale": …})'
        )
    return {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": places}


def _of_record(converts: list[tuple[str, str, Convert | None]]) -> Convert:
    def convert(data: Any) -> dict[str, Any]:
        return {
            name: getattr(data, attribute) if make is None else make(getattr(data, attribute))
            for name, attribute, make in converts
        }

    return convert


def _of_items(convert: Convert | None) -> Convert | None:
    if convert is None:
        return list
    return lambda data: [convert(item) for item in data]


def _of_values(convert: Convert) -> Convert:
    return lambda data: {key: convert(value) for key, value in data.items()}


def _of_union(members: list[_Member]) -> Convert:
    def convert(data: Any) -> Any:
        for member in members:
            if isinstance(data, member.takes):
                assert member.convert is not None
                made = member.convert(data)
                return made if member.tag is None else (member.tag, made)
        return data

    return convert


def _enum_name(data: Any) -> Any:
    return data.name if isinstance(data, Enum) else data
