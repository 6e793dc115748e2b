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
        ("org.apache.kafka.common.serialization.NoSuchSerializer", "ModuleNotFoundError"),
    ],
)
def test_a_path_that_leads_nowhere_says_so(path: str, why: str) -> None:
    with pytest.raises(ConfigException, match=rf"config 'key.serializer' is '{path}', .* \({why}: ") as raised:
        named(path, config="key.serializer")
    assert (raised.value.name, raised.value.value) == ("key.serializer", path)


TOKENS = [
    "eyJhbGciOiJub25lIn0.cGxhbnRlZA.sig",
    "eyJh.PLANTED.c2ln",
    "s.PLANTED",
    "PLANTED",
    "x-PLANTED",
    "a" * 41 + ".b",
]


@pytest.mark.parametrize("config", ["sasl.oauth.token.provider", "bearer.auth.token.provider"])
@pytest.mark.parametrize("text", [*TOKENS, "acme.PLANTED"])
def test_a_token_instead_of_its_provider_is_never_shown(text: str, config: str) -> None:
    with pytest.raises(ConfigException, match=f"config '{config}' is a text that cannot be imported") as raised:
        named(text, config=config)
    error = raised.value
    assert (error.name, error.value, error.__cause__, error.__context__) == (config, None, None, None)
    assert text not in str(error)


def test_a_provider_with_a_typo_is_shown() -> None:
    with pytest.raises(ConfigException, match=r"is 'aioproducer\.nosuch:Provider', which cannot be imported"):
        named("aioproducer.nosuch:Provider", config="sasl.oauth.token.provider")
    with pytest.raises(ConfigException, match=r"is '__main__\.Provider', which cannot be imported"):
        named("__main__.Provider", config="sasl.oauth.token.provider")


@pytest.mark.parametrize("text", ["not a path", "-----BEGIN PRIVATE KEY-----\nPLANTED", "PLANTED"])
def test_a_text_that_is_no_import_path_is_not_shown(text: str) -> None:
    with pytest.raises(ConfigException, match=r"is a text that cannot be imported") as raised:
        named(text, config="ssl.engine.factory.class")
    assert text not in str(raised.value)


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
