from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aioproducer import serializers
from aioproducer.configs.plugins import JAVA_CLASSES, made, named
from aioproducer.errors import ConfigException
from aioproducer.serializers import LongSerializer


@pytest.mark.parametrize("path", ["aioproducer.serializers.LongSerializer", "aioproducer.serializers:LongSerializer"])
def test_an_import_path_is_what_it_leads_to(path: str) -> None:
    assert named(path, config="key.serializer") is LongSerializer


def test_kafkas_own_classes_are_ours() -> None:
    """As a ``.properties`` file written for Java names them."""
    assert named("org.apache.kafka.common.serialization.LongSerializer", config="key.serializer") is LongSerializer
    for java in JAVA_CLASSES:
        assert isinstance(named(java, config="key.serializer"), type)


def test_every_serializer_that_needs_no_argument_has_its_java_name() -> None:
    listed = {path.rpartition(".")[2] for path in JAVA_CLASSES.values() if path.startswith("aioproducer.serializers.")}
    assert listed == set(serializers.__all__) - {
        *("Serialized", "Serializer", "SerializerFunction", "SerializerLike", "ListSerializer"),
    }


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("com.acme.JsonSerializer", "ModuleNotFoundError"),
        ("aioproducer.serializers.NoSuchSerializer", "AttributeError"),
        ("not a path", "ValueError"),
        ("org.apache.kafka.common.serialization.NoSuchSerializer", "ModuleNotFoundError"),
    ],
)
def test_a_path_that_leads_nowhere_says_so(path: str, why: str) -> None:
    with pytest.raises(ConfigException, match=rf"config 'key.serializer' is '{path}', .* \({why}: ") as raised:
        named(path, config="key.serializer")
    assert (raised.value.name, raised.value.value) == ("key.serializer", path)


def test_a_module_that_raises_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_plugin.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigException, match="ZeroDivisionError") as raised:
        named("broken_plugin.Thing", config="key.serializer")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert "broken_plugin" not in sys.modules


def test_a_class_is_made_and_an_object_is_taken_as_it_is() -> None:
    assert isinstance(made(LongSerializer, config="key.serializer"), LongSerializer)
    serializer = LongSerializer()
    assert made(serializer, config="key.serializer") is serializer
    assert made(None, config="key.serializer") is None


def test_a_class_that_needs_arguments_says_so() -> None:
    class Picky:
        def __init__(self, schema: str) -> None:
            self.schema = schema

    with pytest.raises(ConfigException, match=r"the class .*Picky, which cannot be made without arguments") as raised:
        made(Picky, config="value.serializer")
    assert (raised.value.name, raised.value.value) == ("value.serializer", Picky)
