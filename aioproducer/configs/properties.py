"""Java's ``.properties`` files, which Kafka's tools take configs from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from aioproducer.errors import ConfigException

# Compiled on first use: most producers read no properties.
_LINE_END: Final = r"\r\n|[\r\n]"
_BLANKS: Final = " \t\f"
_ENTRY: Final = r"(?s)((?:[^\\=: \t\f]|\\.)*)([ \t\f]*[=:]?[ \t\f]*)(.*)"
_ESCAPE: Final = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def given_configs(config: Mapping[str, object] | str) -> Mapping[str, Any]:
    """Configs by name, from a mapping or the text of a ``.properties`` file; ConfigException if it is neither."""
    if isinstance(config, str):
        return read_properties(config)
    wanted = "configs are a mapping from Kafka's names to values, or the text of a .properties file"
    if not isinstance(config, Mapping):
        raise ConfigException(f"{wanted}; this is of type {type(config).__name__}")
    for name in config:
        if not isinstance(name, str):
            raise ConfigException(f"{wanted}; one name is of type {type(name).__name__}")
    return config


def read_properties(text: str) -> dict[str, str]:
    """The entries of a ``.properties`` text, without blanks around values. The last entry of a name counts.

    Raises :class:`ConfigException` for a line without a separator, which Java takes for a name with an empty value: it
    may be a line of a key, or a password. The error shows no text.
    """
    entries = {}
    for number, line in _logical_lines(text):
        entry = re.fullmatch(_ENTRY, line)
        assert entry is not None, "every line is an entry"
        name, separator, value = entry.groups()
        if not separator.strip(_BLANKS) and not value:
            raise ConfigException(
                f"not a .properties text: line {number} has no '='. Each line of a value but the last ends with a "
                "backslash, and an empty value is written as NAME="
            )
        entries[_unescaped(name)] = _unescaped(value).strip()
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Joins what backslashes continue; leaves out empty lines and comments. With the number of the first line."""
    begun: str | None = None
    first = 0
    for number, line in enumerate(re.split(_LINE_END, text), 1):
        rest = line.lstrip(_BLANKS)
        if begun is None and rest.startswith(("#", "!")):
            continue
        if begun is None:
            first = number
        begun = (begun or "") + rest
        if (len(rest) - len(rest.rstrip("\\"))) % 2:
            begun = begun[:-1]
            continue
        if begun:
            yield first, begun
        begun = None
    if begun:
        yield first, begun


def _unescaped(text: str) -> str:
    plain = re.sub(_ESCAPE, _character, text)
    try:  # two escapes make one character beyond U+FFFF
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ConfigException("not a .properties text: half of a surrogate pair") from None


def _character(escape: re.Match[str]) -> str:
    after = escape[1]
    if after == "u":
        raise ConfigException(r"not a .properties text: \u is not followed by four hexadecimal digits")
    return chr(int(after[1:], 16)) if len(after) == 5 else _CONTROLS.get(after, after)
