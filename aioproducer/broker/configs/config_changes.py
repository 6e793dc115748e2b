"""Single changes to the configs of a topic or a broker, and the configs after them (KIP-339)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from aioproducer.configs.config_def import ConfigKey, Type, as_text
from aioproducer.errors import InvalidConfigurationException, InvalidRequestException
from aioproducer.protocol.text_check import MAX_STRING_LENGTH


class OpType(IntEnum):
    """Kafka's ``AlterConfigOp.OpType``. The last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One change. ``value`` is ignored, and may be None, if ``operation`` is DELETE."""

    name: str
    operation: OpType
    value: str | None

    @property
    def deletes(self) -> bool:
        return self.operation is OpType.DELETE

    @staticmethod
    def of(name: str, operation: int, value: str | None) -> ConfigChange:
        """A change that a client sent. Raises :class:`InvalidRequestException`."""
        if operation not in OpType.__members__.values():
            raise InvalidRequestException(f"there is no operation {operation} for config {name!r}")
        if value is None and operation != OpType.DELETE:
            raise InvalidRequestException(f"config {name!r} needs a value")
        return ConfigChange(name, OpType(operation), value)


def changed(
    current: Mapping[str, str], changes: Iterable[ConfigChange], rows: Mapping[str, ConfigKey]
) -> Mapping[str, str]:
    """``current`` after the changes; the values are not checked.

    APPEND and SUBTRACT change the value in ``current``, or else the default, even if another value is effective. Raises
    :class:`InvalidRequestException` if a config is changed twice, and :class:`InvalidConfigurationException` if one of
    these operations is applied to a config that is no list, or would make it too long.
    """
    configs = dict(current)
    seen = set()
    for name, operation, value in changes:
        if name in seen:
            raise InvalidRequestException(f"config {name!r} is changed twice")
        seen.add(name)
        if operation is OpType.DELETE:
            configs.pop(name, None)
        elif operation is OpType.SET:
            configs[name] = value or ""
        else:
            row = rows[name]
            if row.type is not Type.LIST:
                raise InvalidConfigurationException(f"{operation.name} is only for lists, and config {name!r} is none")
            whole = ",".join(_parts(configs.get(name, as_text(row.default)), operation, _split(value or "")))
            if len(whole.encode()) > MAX_STRING_LENGTH:  # no response could describe it
                raise InvalidConfigurationException(f"config {name!r} would be longer than {MAX_STRING_LENGTH} bytes")
            configs[name] = whole
    return configs


def _parts(current: str, operation: OpType, parts: list[str]) -> list[str]:
    kept = _split(current)
    if operation is OpType.APPEND:
        known = frozenset(kept)
        return [*kept, *(part for part in dict.fromkeys(parts) if part not in known)]
    removed = frozenset(parts)
    return [part for part in kept if part not in removed]


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
