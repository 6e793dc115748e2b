from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer import KafkaProducer, sync
from aioproducer.admin import KafkaAdmin
from aioproducer.configs.properties import read_properties
from aioproducer.errors import ConfigException


def test_as_java_writes_them() -> None:
    text = """
# a comment
! another one
linger.ms = 5
acks:all\x20
bootstrap.servers=a:1,\\
    b:2
key\\ with\\ spaces value
empty=
unicode=\\u00e9
"""
    assert read_properties(text) == {
        "linger.ms": "5",
        "acks": "all",
        "bootstrap.servers": "a:1,b:2",
        "key with spaces": "value",
        "empty": "",
        "unicode": "é",
    }


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("", {}),
        (" \t\f\n\r\n\r", {}),
        ("a=1\ra=2\r\nb=3", {"a": "2", "b": "3"}),
        ("a==b", {"a": "=b"}),
        ("=b", {"": "b"}),
        ("a\fb", {"a": "b"}),
        ("a\\:b\\=c:d", {"a:b=c": "d"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\\\\\n c", {"a": "b\\c"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("# a\\\nb=c", {"b": "c"}),
        ("a=b\\", {"a": "b"}),
        ("\\\na=b", {"a": "b"}),
        ("\\", {}),
        ("a=\\q\\t.", {"a": "q\t."}),
        ("a=\\u0041\\u0042", {"a": "AB"}),
        ("a=\\\\u0041", {"a": "\\u0041"}),
        ("a=\\uD83D\\uDE00", {"a": "😀"}),
        ("a=😀", {"a": "😀"}),
        ("a=x\u2028y\x0bz", {"a": "x\u2028y\x0bz"}),
    ],
)
def test_lines_and_escapes(text: str, entries: dict[str, str]) -> None:
    assert read_properties(text) == entries


@pytest.mark.parametrize(
    "text", ["name=\\u12", "name=\\u12g4", "na\\ume=x", "name=\\u", "a=\\uD83D", "a=\\uDE00\\uD83D"]
)
def test_a_text_that_is_no_properties_is_refused(text: str) -> None:
    with pytest.raises(ConfigException, match=r"not a \.properties text"):
        read_properties(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("planted", 1),
        ("a=b\n  planted  ", 2),
        ("# c\r\n\r\na=b\\\r\n c\r\nplanted\\\r\n planted", 5),
        ("sasl.plain.password=\nplanted", 2),
        ("sasl.plain.password\\=planted", 1),
        ("ssl.keystore.key=-----BEGIN PRIVATE KEY-----\nplanted+/planted\n-----END PRIVATE KEY-----", 2),
    ],
)
def test_a_line_without_a_separator_is_named_by_its_number_only(text: str, line: int) -> None:
    with pytest.raises(ConfigException, match=rf"line {line} has no '='\. .* backslash, .* NAME=$") as raised:
        read_properties(text)
    assert "planted" not in f"{raised.value} {vars(raised.value)}"


BLANK = "\\ "
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def escaped(text: str, blank: str) -> str:
    """As ``java.util.Properties.store`` writes a name or a value."""
    controls = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", " ": blank}
    written = []
    for character in text:
        if character in controls:
            written.append(controls[character])
        elif character in "\\=:#!":
            written.append("\\" + character)
        elif " " <= character <= "~":
            written.append(character)
        else:
            pairs = character.encode("utf-16-be").hex()
            written.append("".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4)))
    return "".join(written)


@given(st.dictionaries(names, names.map(str.strip)))
def test_properties_stored_by_java_are_read_back(entries: dict[str, str]) -> None:
    text = "".join(f"{escaped(name, BLANK)}={escaped(value, ' ')}\n" for name, value in entries.items())
    assert read_properties(text) == entries


@pytest.mark.parametrize("client", [KafkaProducer, KafkaAdmin, sync.KafkaProducer])
@pytest.mark.parametrize(
    ("config", "why"), [(5, "this is of type int"), (None, "NoneType"), ({1: 2}, "one name is of type int")]
)
def test_configs_that_are_none_are_refused(client: Any, config: Any, why: str) -> None:
    with pytest.raises(ConfigException, match=f"a mapping from Kafka's names to values.*{why}"):
        client.from_config(config)
