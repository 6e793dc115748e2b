"""Java's ``.properties`` files, which Kafka's tools take configs from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aioproducer.errors import ConfigException

# Compiled on first use: most producers read no properties.
_LINE_END: Final = r"\r\n|[\r\n]"
_BLANKS: Final = " \t\f"
_ENTRY: Final = r"(?s)((?:[^\\=: \t\f]|\\.)*)[ \t\f]*[=:]?[ \t\f]*(.*)"
_ESCAPE: Final = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> dict[str, str]:
    """The entries of a ``.properties`` text, without blanks around values. The last entry of a name counts."""
    entries = {}
    for line in _logical_lines(text):
        entry = re.fullmatch(_ENTRY, line)
        assert entry is not None, "every line is an entry"
        entries[_unescaped(entry[1])] = _unescaped(entry[2]).strip()
    return entries


def _logical_lines(text: str) -> Iterator[str]:
    """Joins what backslashes continue; leaves out empty lines and comments."""
    begun: str | None = None
    for line in re.split(_LINE_END, text):
        rest = line.lstrip(_BLANKS)
        if begun is None and rest.startswith(("#", "!")):
            continue
        begun = (begun or "") + rest
        if (len(rest) - len(rest.rstrip("\\"))) % 2:
            begun = begun[:-1]
            continue
        if begun:
            yield begun
        begun = None
    if begun:
        yield begun


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
