"""Quotas of users, client ids and addresses, as the admin client describes and alters them (KIP-546, KIP-612)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Literal, Self

from aioproducer.errors import KafkaError
from aioproducer.protocol.messages.alter_client_quotas import EntryData, OpData
from aioproducer.protocol.messages.describe_client_quotas import ComponentData, EntityData

_EXACT, _DEFAULT, _SPECIFIED = range(3)


class EntityName(Enum):
    """Stands in the place of a name."""

    DEFAULT = "default"
    """All entities without quotas under their own name."""
    ANY = "any"
    """In a filter: any name, including ``DEFAULT``."""


Default = Literal[EntityName.DEFAULT]
Wanted = str | EntityName | None
"""One condition of a filter: a name, ``EntityName``, or None for none."""


@dataclass(frozen=True, slots=True)
class ClientQuotaEntity:
    """What has quotas: a user, a client id, both together, or an ip address alone (Kafka's class of this name).

    ``EntityName.DEFAULT`` means all without their own quotas: ``ClientQuotaEntity(client_id=EntityName.DEFAULT)``.
    """

    user: str | Default | None = None
    client_id: str | Default | None = None
    ip: str | Default | None = None

    def parts(self) -> list[EntityData]:
        """The parts of the entity, for a request."""
        return [EntityData(kind, None if name is EntityName.DEFAULT else name) for kind, name in self._names()]

    @classmethod
    def of(cls, parts: list[EntityData]) -> Self:
        """The entity in a broker's answer. Raises :class:`KafkaError` for a kind that this client does not know."""
        names = {part.entity_type.replace("-", "_"): part.entity_name for part in parts}
        if unknown := names.keys() - {field.name for field in fields(cls)}:
            raise KafkaError(f"the broker has quotas of {', '.join(sorted(unknown))}, which this client does not know")
        return cls(**{kind: EntityName.DEFAULT if name is None else name for kind, name in names.items()})

    def _names(self) -> Iterator[tuple[str, str | Default]]:
        for kind, name in (("user", self.user), ("client-id", self.client_id), ("ip", self.ip)):
            if name is not None:
                yield kind, name

    def __str__(self) -> str:
        names = [f"{kind} {'(default)' if name is EntityName.DEFAULT else repr(name)}" for kind, name in self._names()]
        return " and ".join(names) or "nobody"


def conditions(user: Wanted, client_id: Wanted, ip: Wanted) -> list[ComponentData]:
    """The conditions of a filter, for a request."""
    return [
        _condition(kind, name)
        for kind, name in (("user", user), ("client-id", client_id), ("ip", ip))
        if name is not None
    ]


def _condition(kind: str, name: str | EntityName) -> ComponentData:
    match name:
        case EntityName.DEFAULT:
            return ComponentData(kind, _DEFAULT, None)
        case EntityName.ANY:
            return ComponentData(kind, _SPECIFIED, None)
        case _:
            return ComponentData(kind, _EXACT, name)


def quota_changes(entity: ClientQuotaEntity, quotas: Mapping[str, float | None]) -> EntryData:
    """The changes of one entity, for a request."""
    ops = [OpData(key, 0.0 if value is None else value, value is None) for key, value in quotas.items()]
    return EntryData(entity.parts(), ops)
