"""The declarations are Kafka's: compared, field by field, with the specifications inside the kafka-clients jar."""

from __future__ import annotations

import copy
import re
from typing import Any, get_type_hints

import pytest

from aioproducer.protocol import schema
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import ApiMessage, Array, Fixed, Message, Request, Sized, Struct, Type, Wire

pytestmark = pytest.mark.timeout(660)  # the first run of all fetches Kafka


RENAMED = {"EntryResult": "EntryData"}
"""AlterClientQuotas has two structs of one name."""


def with_kip_1269(spec: Any) -> Any:
    """What KIP-1269 changes in the specifications; no Kafka that is released has it."""
    spec = copy.deepcopy(spec)
    if spec["name"] in ("ProduceRequest", "ProduceResponse"):
        assert spec["validVersions"] == "3-13"
        spec["validVersions"] = "3-14"
    if spec["name"] == "ProduceResponse":
        partition_responses = spec["fields"][0]["fields"][-1]
        assert partition_responses["type"] == "[]PartitionProduceResponse"
        partition_responses["fields"].append(
            {
                "name": "ProducerStateBatchesToRetain",
                "type": "int32",
                "versions": "14+",
                "taggedVersions": "14+",
                "tag": 1,
                "default": "5",
            }
        )
    return spec


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def default_of(spec: Any) -> Any:
    """The default of a field, as Python has it."""
    kind, written = spec["type"], spec.get("default")
    if kind in ("string", "bytes"):
        return None if written == "null" else (written or "") if kind == "string" else b""
    if kind == "bool":
        return str(written).lower() == "true"
    if kind == "uuid":
        return ZERO_UUID
    if kind == "float64":
        return float(written or 0)
    if re.fullmatch(r"u?int\d+", kind):
        return int(str(written or 0), 0)
    assert written in (None, "null")
    return None


def described(spec: Any, *, prefix: str = "", common: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """The fields of a specification, in the words of ``declared``."""
    common = {inner["name"]: inner for inner in spec.get("commonStructs", ())} | (common or {})

    def inside(field: Any) -> list[dict[str, Any]] | None:
        inner = field if "fields" in field else common.get(field["type"].removeprefix("[]"))
        return None if inner is None else described(inner, common=common)

    return [
        {
            "name": snake_case(field["name"].removeprefix(prefix)),
            "type": field["type"],
            "versions": field["versions"],
            "nullable": field.get("nullableVersions", "none"),
            "default": default_of(field),
            "tag": field.get("tag"),
            "tagged": field.get("taggedVersions", "none"),
            "ignorable": field.get("ignorable", False),
            "flexible": field.get("flexibleVersions"),
            "fields": inside(field),
        }
        for field in spec["fields"]
    ]


def declared(cls: type[Struct]) -> list[dict[str, Any]]:
    return [
        {
            "name": wire.name,
            "type": type_name(wire.type),
            "versions": str(wire.versions),
            "nullable": str(wire.nullable),
            "default": wire.default,
            "tag": wire.tag,
            "tagged": str(wire.tagged),
            "ignorable": wire.ignorable,
            "flexible": None if wire.flexible is None else str(wire.flexible),
            "fields": declared(inner) if (inner := inner_struct(wire)) else None,
        }
        for wire in cls.FIELDS
    ]


def type_name(type_: Type) -> str:
    if isinstance(type_, Array):
        return "[]" + type_name(type_.element)
    if isinstance(type_, type):
        return RENAMED.get(type_.__name__, type_.__name__)
    return type_.name


def inner_struct(wire: Wire) -> type[Struct] | None:
    type_ = wire.type.element if isinstance(wire.type, Array) else wire.type
    return type_ if isinstance(type_, type) else None


def test_declaration_is_kafkas(cls: type[Message], kafka_specs: dict[str, Any]) -> None:
    spec = with_kip_1269(kafka_specs[cls.__name__])
    # The one change of names: the header's RequestApiKey and RequestApiVersion are api_key and api_version.
    prefix = "Request" if cls is RequestHeader else ""
    assert declared(cls) == described(spec, prefix=prefix)
    assert str(cls.VALID_VERSIONS) == spec["validVersions"]
    assert str(cls.FLEXIBLE_VERSIONS) == spec["flexibleVersions"]
    if issubclass(cls, ApiMessage):
        kind = "Request" if issubclass(cls, Request) else "Response"
        assert spec["type"] == kind.lower()
        assert spec["apiKey"] == cls.API_KEY
        assert [cls.VALID_VERSIONS.low, cls.FLEXIBLE_VERSIONS.low] == [cls.MIN_VERSION, cls.FLEXIBLE_VERSION]
        unstable = kafka_specs[cls.__name__.removesuffix(kind) + "Request"].get("latestVersionUnstable", False)
        assert cls.VALID_VERSIONS.high - unstable == cls.MAX_VERSION


def test_annotations_agree_with_the_declarations(cls: type[Message]) -> None:
    check_annotations(cls)


def check_annotations(cls: type[Struct]) -> None:
    hints = get_type_hints(cls)
    for wire in cls.FIELDS:
        expected = python_type(wire.type)
        if wire.nullable.high >= 0 and wire.type is not schema.RECORDS:
            expected |= None
        assert hints[wire.name] == expected, f"{cls.__name__}.{wire.name}"
        if inner := inner_struct(wire):
            check_annotations(inner)


def python_type(type_: Type) -> Any:
    if isinstance(type_, Array):
        return list[python_type(type_.element)]  # type: ignore[misc]
    if isinstance(type_, Fixed):
        odd = {schema.BOOL: bool, schema.FLOAT64: float, schema.UUID: ZERO_UUID.__class__}
        return odd.get(type_, int)
    if isinstance(type_, Sized):
        return {schema.STRING: str, schema.BYTES: bytes, schema.RECORDS: schema.Records}[type_]
    return type_
