"""Configs declared as data: a frozen dataclass whose fields are the table.

A field's name with dots for underscores is the config's Kafka name; its metadata holds type, range and documentation.
:func:`parse` turns what a user wrote (snake_case or dotted names, strings or Python values) into an instance, or raises
:class:`~aioproducer.errors.ConfigException` naming the config, the value and what is allowed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeVar

from aioproducer.configs.names import NOT_SHOWN, may_show, nearest
from aioproducer.configs.plugins import named
from aioproducer.configs.providers import Resolved
from aioproducer.errors import ConfigException
from aioproducer.security.password import Password


class Type(Enum):
    """Kafka's config types (``ConfigDef.Type``). What is of a class may be an object, too (see ``plugins.py``)."""

    BOOLEAN = "boolean"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    LIST = "list"
    CLASS = "class"
    CLASSES = "list of classes"
    PASSWORD = "password"


INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_LIMITS = {Type.SHORT: (-(2**15), 2**15 - 1), Type.INT: (-(2**31), INT_MAX), Type.LONG: (-(2**63), LONG_MAX)}

Validator = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Valid:
    """What values a config may have: a test, and its description for messages and documentation."""

    text: str
    test: Validator
    values: tuple[str, ...] = ()
    """Those to name, if they are few: type checkers accept no others."""


ANY = Valid("", lambda value: True)


def between(low: float, high: float) -> Valid:
    return Valid(f"{low} to {high}", lambda value: low <= value <= high)


def at_least(low: int) -> Valid:
    return Valid(f"at least {low}", lambda value: bool(value >= low))


def one_of(*allowed: str) -> Valid:
    return Valid("one of " + ", ".join(allowed), lambda value: value in allowed, allowed)


def list_of(*allowed: str) -> Valid:
    return Valid("a list of " + ", ".join(allowed), lambda value: all(one in allowed for one in value))


def one_of_in_any_case(*allowed: str) -> Valid:
    in_both_cases = (*(value.upper() for value in allowed), *allowed)
    return Valid("one of " + ", ".join(allowed), lambda value: value.lower() in allowed, in_both_cases)


NON_EMPTY = Valid("non-empty", lambda value: len(value) > 0)


def bytes_of_text(low: int, high: int) -> Valid:
    """For texts that are a part of every request: one that cannot be written would fail all of them."""
    return Valid(f"{low} to {high} bytes in UTF-8", lambda value: low <= len(value.encode()) <= high)


MAX_NAME = 32_000
"""Bytes of a client's names. A string of the protocol has at most 32,767, and a client.id may begin with producer-."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One row of a table of configs."""

    name: str
    type: Type
    default: Any
    """``dataclasses.MISSING`` where the user must give a value."""
    valid: Valid
    doc: str


def key(type: Type, default: Any, valid: Valid, doc: str) -> Any:
    """Declares a field of a config dataclass; ``default`` is ``dataclasses.MISSING`` for a required one."""
    return dataclasses.field(default=default, kw_only=True, metadata={"type": type, "valid": valid, "doc": doc})


def table(config_class: type[Any]) -> dict[str, ConfigKey]:
    """Every config of the class by its dotted name, in the order declared."""
    rows = {}
    for field in dataclasses.fields(config_class):
        if not field.metadata:
            continue  # not one of :func:`key`
        name = field.name.replace("_", ".")
        rows[name] = ConfigKey(
            name, field.metadata["type"], field.default, field.metadata["valid"], field.metadata["doc"]
        )
    return rows


_OF_OTHER_CLIENTS = {
    "sasl.kerberos.keytab": "sasl.jaas.config",
    "sasl.kerberos.principal": "sasl.jaas.config",
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.oauthbearer.client.id": "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.secret": "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.password": "sasl.plain.password",
    "sasl.username": "sasl.plain.username",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.cafile": "ssl.truststore.location",
    "ssl.certfile": "ssl.keystore.location",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.check.hostname": "ssl.endpoint.identification.algorithm",
    "ssl.ciphers": "ssl.cipher.suites",
    "ssl.key.location": "ssl.keystore.location",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.keyfile": "ssl.keystore.location",
    "ssl.password": "ssl.key.password",
}
"""Names that librdkafka and kafka-python have for security configs; no message may advise removing these."""

_IN_FILES = "; in a .properties file, '=' follows the name, and each line of a value but the last ends with a backslash"

T = TypeVar("T")

_SURROGATE = "[\ud800-\udfff]"  # compiled on first use, as it would be half a millisecond of every import


def parse(
    config_class: type[T],
    given: Mapping[str, object],
    *,
    unsupported: Mapping[str, str] = MappingProxyType({}),
    owner: str = "producer",
) -> T:
    """An instance of ``config_class`` with the user's values, each checked by itself.

    ``unsupported`` has the names (or prefixes ending in a dot) of configs that Kafka has and we have not, and why:
    those are refused by name, as a config that is silently ignored is worse than none.
    """
    rows = table(config_class)
    values: dict[str, Any] = {}
    for written, raw in given.items():
        name = written.replace("_", ".")
        row = rows.get(name)
        if row is None:
            raise _refused(name, rows, unsupported, owner)
        if row.name.replace(".", "_") in values:
            raise ConfigException(f"config {name!r} is given twice", name=name)
        values[name.replace(".", "_")] = checked(row, raw)
    for row in rows.values():
        if row.default is dataclasses.MISSING and row.name.replace(".", "_") not in values:
            raise ConfigException(f"config {row.name!r} is missing: {row.doc}", name=row.name)
    return config_class(**values)


def checked(row: ConfigKey, raw: object) -> Any:
    """The value of one config, of its type and in its range; anything else is a :class:`ConfigException`."""
    if isinstance(raw, Resolved):
        try:
            return checked(row, str(raw))
        except ConfigException:  # its message may show what only the reference may be known by
            wanted = row.type.value + (f", {row.valid.text}" if row.valid.text else "")
            shown = _printable(row, raw.written)
            raise ConfigException(
                f"config {row.name!r} is {shown!r}, which stands for something else; it must be of type {wanted}",
                name=row.name,
                value=shown,
            ) from None
    value = raw if raw is None and row.default is None else _converted(row, raw)
    if value is not None and not row.valid.test(value):
        shown = _printable(row, raw)
        raise ConfigException(
            f"config {row.name!r} is {shown!r}; it must be {row.valid.text}", name=row.name, value=shown
        )
    return value


def as_text(value: object) -> str:
    """A value as Kafka writes it: what :func:`checked` makes the same value of again."""
    if isinstance(value, bool):
        return str(value).lower()
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def unknown(name: str, rows: Mapping[str, ConfigKey], owner: str) -> ConfigException:
    """What to raise for a config that the table does not have."""
    near = nearest(name, rows)
    hint = f"; did you mean {near!r}?" if near else ""
    if may_show(name, rows):
        return ConfigException(f"unknown {owner} config {name!r}{hint}", name=name)
    return ConfigException(f"unknown {owner} config, {NOT_SHOWN}{hint or _IN_FILES}")


def _refused(name: str, rows: Mapping[str, ConfigKey], unsupported: Mapping[str, str], owner: str) -> ConfigException:
    if (ours := _OF_OTHER_CLIENTS.get(name)) in rows:
        return ConfigException(f"unknown {owner} config {name!r}; it is {ours!r} here", name=name)
    for entry, why in unsupported.items():
        if name == entry or (entry.endswith(".") and name.startswith(entry) and may_show(name, rows)):
            return ConfigException(f"config {name!r} is not supported: {why}; remove it", name=name)
    return unknown(name, rows, owner)


def _converted(row: ConfigKey, raw: object) -> Any:
    if isinstance(raw, str) and re.search(_SURROGATE, raw):
        raise ConfigException(
            f"config {row.name!r} has half of a surrogate pair: its value, or the file or variable that it comes from, "
            "is not UTF-8",
            name=row.name,
        )
    text = raw.strip() if isinstance(raw, str) else raw
    match row.type:
        case Type.BOOLEAN:
            if isinstance(text, bool):
                return text
            if isinstance(text, str) and text.lower() in ("true", "false"):
                return text.lower() == "true"
        case Type.SHORT | Type.INT | Type.LONG:
            number: int | None = None
            if isinstance(text, int) and not isinstance(text, bool):
                number = text
            elif isinstance(text, str) and re.fullmatch(r"[+-]?[0-9]{1,30}", text):  # int() takes more than Java does
                number = int(text)
            low, high = _LIMITS[row.type]
            if number is not None and low <= number <= high:
                return number
            if number is not None and row.valid.test(number):  # the limit is the type's
                limits = [row.valid.text or f"at least {low}", f"at most {high}"]
                raise ConfigException(
                    f"config {row.name!r} is {number}; it must be of type {row.type.value}, {' and '.join(limits)}",
                    name=row.name,
                    value=number,
                )
        case Type.DOUBLE:
            if isinstance(text, int | float) and not isinstance(text, bool):
                return float(text)
            if isinstance(text, str) and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
                return float(text)
        case Type.STRING:
            if isinstance(text, str):
                return text
            if isinstance(text, int) and not isinstance(text, bool):
                return str(text)  # acks=1
        case Type.LIST:
            if isinstance(text, str):
                return tuple(part.strip() for part in text.split(",") if part.strip())
            if isinstance(text, Sequence) and all(isinstance(part, str) for part in text):
                return tuple(text)
        case Type.CLASS:
            if text is not None and text != "":
                return named(text, config=row.name) if isinstance(text, str) else text
        case Type.CLASSES:
            if isinstance(text, str):
                text = [part.strip() for part in text.split(",") if part.strip()]
            many = text if isinstance(text, list | tuple) else [text]
            if all(one is not None and one != "" for one in many):
                return tuple(named(one, config=row.name) if isinstance(one, str) else one for one in many)
        case Type.PASSWORD:
            if isinstance(raw, Password):
                return raw
            if isinstance(raw, str):
                return Password(raw)  # blanks may be a part of it
    wanted = row.type.value + (f", {row.valid.text}" if row.valid.text else "")
    shown = _printable(row, raw)
    raise ConfigException(f"config {row.name!r} is {shown!r}; it must be of type {wanted}", name=row.name, value=shown)


def _printable(row: ConfigKey, raw: object) -> object:
    """A value as messages may have it. Of what may hold a secret only the class is shown: of an object instead of a
    plugin, such as a token in a list, and of addresses with a user and a password."""
    if row.type is Type.PASSWORD:
        return Password.HIDDEN
    of_plugin = row.type is Type.CLASS and not isinstance(raw, str | int | float | None)
    of_address = row.type is Type.LIST and "@" in repr(raw)
    return type(raw) if of_plugin or of_address else raw
