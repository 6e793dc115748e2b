"""Without the library of an extra, the error says which extra to install."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from aioproducer.errors import ConfigException
from aioproducer.schema_registry import AvroSerializer, JsonSchemaSerializer, ProtobufSerializer, SchemaRegistryClient

ANY: Any = None


@pytest.mark.parametrize(
    ("library", "extra", "make"),
    [
        ("httpx", "schema-registry", lambda: SchemaRegistryClient("http://127.0.0.1:1")),
        ("fastavro", "schema-registry-avro", lambda: AvroSerializer(ANY, '"int"')),
        ("jsonschema", "schema-registry-json", lambda: JsonSchemaSerializer(ANY, {})),
        ("pydantic", "schema-registry-json", lambda: JsonSchemaSerializer(ANY, type("Model", (), {}))),
        ("google.protobuf.message", "schema-registry-protobuf", lambda: ProtobufSerializer(ANY, object)),
    ],
)
def test_it_names_the_extra(
    library: str, extra: str, make: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigException, match=rf"pip install 'aioproducer\[{extra}\]'"):
        make()
