"""Schemas that are derived from classes, and objects that come back as they were sent."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Union
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastavro", reason="fastavro is not installed")

import fastavro

from aioproducer.errors import IllegalArgumentException
from aioproducer.schema_registry import AvroType, avro_schema
from aioproducer.schema_registry.avro_models import avro_model

Sku = NewType("Sku", str)


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Simple:
    flag: bool
    number: int
    real: float
    text: str
    data: bytes


@dataclass
class Tree:
    name: str
    children: list[Tree] = field(default_factory=list)
    parent: Tree | None = None


@dataclass(slots=True)
class Everything:
    at: datetime
    day: date
    clock: time
    id: UUID
    color: Color
    level: Literal["low", "high"]
    sku: Sku
    small: Annotated[int, AvroType("int")]
    price: Annotated[Decimal, AvroType({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2})]
    items: Sequence[Simple]
    colors: tuple[Color, ...]
    by_name: Mapping[str, Color]
    either: Simple | Tree | str | None
    also: Color | int = 5


SIMPLE = {
    "type": "record",
    "name": "Simple",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "number", "type": "long"},
        {"name": "real", "type": "double"},
        {"name": "text", "type": "string"},
        {"name": "data", "type": "bytes"},
    ],
}


def test_simple_types() -> None:
    assert avro_schema(Simple) == SIMPLE
    assert avro_model(Simple).plain


def test_a_class_of_itself() -> None:
    assert avro_schema(Tree, "shop") == {
        "type": "record",
        "name": "Tree",
        "namespace": "shop",
        "fields": [
            {"name": "name", "type": "string"},
            {"name": "children", "type": {"type": "array", "items": "shop.Tree"}, "default": []},
            {"name": "parent", "type": ["null", "shop.Tree"], "default": None},
        ],
    }


def test_all_other_types() -> None:
    types = {each["name"]: each for each in avro_schema(Everything)["fields"]}
    color = {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}
    assert types["at"]["type"] == {"type": "long", "logicalType": "timestamp-micros"}
    assert types["day"]["type"] == {"type": "int", "logicalType": "date"}
    assert types["clock"]["type"] == {"type": "long", "logicalType": "time-micros"}
    assert types["id"]["type"] == {"type": "string", "logicalType": "uuid"}
    assert types["color"]["type"] == color
    assert types["level"]["type"] == types["sku"]["type"] == "string"
    assert types["small"]["type"] == "int"
    assert types["items"]["type"] == {"type": "array", "items": SIMPLE}
    assert types["colors"]["type"] == {"type": "array", "items": "Color"}
    assert types["by_name"]["type"] == {"type": "map", "values": "Color"}
    assert [each if isinstance(each, str) else each["name"] for each in types["either"]["type"]] == [
        "null",
        "Simple",
        "Tree",
        "string",
    ]
    assert types["also"] == {"name": "also", "type": ["long", "Color"], "default": 5}
    assert not avro_model(Everything).plain


def written(model: Any, data: Any) -> Any:
    made = avro_model(model)
    stream = io.BytesIO()
    parsed = fastavro.parse_schema(made.schema)
    fastavro.schemaless_writer(stream, parsed, made.convert(data), strict=True)
    stream.seek(0)
    return fastavro.schemaless_reader(stream, parsed, None)


SIMPLES = st.builds(Simple, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
TREES = st.recursive(st.builds(Tree), lambda inner: st.builds(Tree, children=st.lists(inner, max_size=3), parent=inner))


@given(
    st.builds(
        Everything,
        at=st.datetimes(timezones=st.just(UTC)),
        sku=st.text(),
        small=st.integers(-(2**31), 2**31 - 1),
        price=st.decimals("-9999999", "9999999", places=2),
        items=st.lists(SIMPLES, max_size=3),
        either=st.one_of(st.none(), st.text(), SIMPLES, TREES),
        clock=st.times(),
    )
)
def test_objects_come_back(data: Everything) -> None:
    found = written(Everything, data)

    def plain(value: Any) -> Any:
        if isinstance(value, Enum):
            return value.name
        if dataclasses.is_dataclass(value):
            return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return {key: plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value

    assert found == plain(data)


def test_defaults() -> None:
    @dataclass
    class Defaults:
        a: int = 1
        b: str | None = "x"
        c: Color = Color.BLUE
        d: bytes = b"\xff"
        e: dict[str, int] = field(default_factory=dict)
        f: float = 1.5
        g: int = field(default_factory=lambda: 7)
        h: str | None = field(default_factory=lambda: None)

    fields = {each["name"]: each for each in avro_schema(Defaults)["fields"]}
    assert {name: each.get("default", "none") for name, each in fields.items()} == {
        "a": 1,
        "b": "x",
        "c": "BLUE",
        "d": "\xff",
        "e": {},
        "f": 1.5,
        "g": "none",
        "h": "none",
    }
    assert fields["b"]["type"] == ["string", "null"]
    fastavro.parse_schema(avro_schema(Defaults))


def test_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        x: int

    class Outer(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        number: int = pydantic.Field(alias="nr")
        price: Decimal = pydantic.Field(max_digits=9, decimal_places=2)
        inner: Inner | None = None
        tags: list[str] = pydantic.Field(default_factory=list)

    assert avro_schema(Outer)["fields"] == [
        {"name": "nr", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {
            "name": "inner",
            "type": ["null", {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "long"}]}],
            "default": None,
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ]
    data = Outer(nr=1, price=Decimal("2.50"), inner=Inner(x=3))
    assert written(Outer, data) == {"nr": 1, "price": Decimal("2.50"), "inner": {"x": 3}, "tags": []}


def model(kind: Any, name: str = "Model") -> Any:
    return dataclasses.make_dataclass(name, [("field", kind)])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (object, r"Model\.field is of type <class 'object'>, which has no type in Avro"),
        (list, "no type in Avro"),
        (dict[int, str], "no type in Avro"),
        (tuple[int, str], "no type in Avro"),
        (complex, "no type in Avro"),
        (list[complex], r"Model\.field\[\]"),
        (Decimal, "a Decimal of unknown size"),
        (Literal["a", 1], "literals of several types"),
        (Enum("Odd", {"a-b": 1}), "'a-b' of Odd is no symbol"),
        (Annotated[Union[model(int, "Twin"), model(str, "Twin")], "x"], "the same name in Avro, Twin"),  # noqa: UP007
    ],
)
def test_a_class_without_a_schema_is_refused(kind: Any, said: str) -> None:
    with pytest.raises(IllegalArgumentException, match=said):
        avro_schema(model(kind))


def test_a_type_that_only_a_function_knows() -> None:
    @dataclass
    class Inner:
        number: int

    @dataclass
    class Outer:
        inner: Inner

    with pytest.raises(IllegalArgumentException, match=r"Outer are not known .* 'Inner' is not defined"):
        avro_schema(Outer)


def test_a_name_that_avro_has_not() -> None:
    with pytest.raises(IllegalArgumentException, match="'größe', which is no name in Avro"):
        avro_schema(dataclasses.make_dataclass("Model", [("größe", int)]))
