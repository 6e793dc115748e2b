"""The quotas of users, client ids and addresses, which AlterClientQuotas sets and DescribeClientQuotas returns.

Kafka's controller checks and keeps quotas (``ClientQuotaControlManager``); its brokers look them up
(``ClientQuotaManager``). Here all nodes share one object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from ipaddress import ip_address
from typing import NamedTuple

from aioproducer.configs.config_def import INT_MAX, LONG_MAX
from aioproducer.errors import InvalidRequestException, PolicyViolationException, UnsupportedVersionException

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Entity = tuple[tuple[str, str | None], ...]
"""Pairs of a type and a name, sorted by type. None is the default, for names without a quota of their own."""


MAX_ENTITIES = 10_000
"""Entities that have quotas. Kafka has no such limit."""

MAX_NAME = 1000
"""Characters of a name. Kafka has no such limit."""


class _Range(NamedTuple):
    most: float
    whole: bool


_OF_CLIENTS = {
    PRODUCER_BYTE_RATE: _Range(LONG_MAX, True),
    CONSUMER_BYTE_RATE: _Range(LONG_MAX, True),
    REQUEST_PERCENTAGE: _Range(math.inf, False),
    CONTROLLER_MUTATION_RATE: _Range(math.inf, False),
}
_OF_ADDRESSES = {CONNECTION_CREATION_RATE: _Range(INT_MAX, True)}


def entity(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """The entity that a client named. Raises :class:`InvalidRequestException` if there is no such entity."""
    found: dict[str, str | None] = {}
    for kind, name in parts:
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequestException(f"there are no quotas for {kind!r}: user, client-id and ip have them")
        if kind in found:
            raise InvalidRequestException(f"the entity has {kind} twice")
        if name == "":
            raise InvalidRequestException(f"the entity's {kind} is empty")
        if name is not None and len(name) > MAX_NAME:
            raise InvalidRequestException(f"the entity's {kind} has {len(name)} characters, more than {MAX_NAME}")
        found[kind] = name
    if not found:
        raise InvalidRequestException("the entity is empty")
    if IP in found:
        if len(found) > 1:
            raise InvalidRequestException("an ip has quotas of its own, and none together with a user or client-id")
        if found[IP] is not None:
            found[IP] = _address(found[IP] or "")
    return tuple(sorted(found.items()))


def _address(name: str) -> str:
    try:
        return str(ip_address(name))
    except ValueError:
        raise InvalidRequestException(f"{name!r} is no IP address (host names are not looked up here)") from None


class MatchType(IntEnum):
    """How a component of a filter matches (``ClientQuotaFilter``)."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2
    """Any name, but not the default."""


class Component(NamedTuple):
    """One condition of a filter."""

    entity_type: str
    match_type: int
    match: str | None


class Limit(NamedTuple):
    """The quota that counts for a client, and the user and client id that share it."""

    bound: float
    user: str
    """Empty if all users of a client id share the quota."""
    client_id: str
    """Empty if all client ids of a user share the quota."""


class ClientQuotas:
    """Quotas by entity. Every change calls the ``listeners``."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, dict[str, float]] = {}
        # The same by quota: a client is looked up per quota, and most quotas are never set.
        self._by_key: dict[str, dict[Entity, float]] = {}
        self.listeners: set[Callable[[], object]] = set()

    def alter(self, of: Entity, changes: Sequence[tuple[str, float | None]]) -> None:
        """Sets quotas of one entity, all or none; None removes one.

        Raises :class:`InvalidRequestException`, and :class:`PolicyViolationException` if there are too many entities.
        """
        self.change(of, changes)
        self.changed()

    def change(self, of: Entity, changes: Sequence[tuple[str, float | None]], *, validate_only: bool = False) -> None:
        """As :meth:`alter`, without calling the listeners: :meth:`changed` calls them after several changes."""
        ranges = _OF_ADDRESSES if of[0][0] == IP else _OF_CLIENTS
        seen = set()
        for key, value in changes:
            if key in seen:
                raise InvalidRequestException(f"the quota {key} is changed twice")
            seen.add(key)
            if value is not None:
                _check(key, value, ranges)
        if of not in self._quotas and len(self._quotas) >= MAX_ENTITIES:
            raise PolicyViolationException(f"{MAX_ENTITIES} entities have quotas, and no more can")
        if validate_only:
            return
        quotas = self._quotas.setdefault(of, {})
        for key, value in changes:
            by_entity = self._by_key.setdefault(key, {})
            if value is None:
                quotas.pop(key, None)
                by_entity.pop(of, None)
            else:
                quotas[key] = by_entity[of] = value
            if not by_entity:
                del self._by_key[key]
        if not quotas:
            del self._quotas[of]

    def changed(self) -> None:
        """Calls the listeners."""
        for listener in tuple(self.listeners):
            listener()

    def describe(self, components: Iterable[Component], *, strict: bool) -> dict[Entity, Mapping[str, float]]:
        """The entities that match all of the components; with ``strict`` those that have no further components.

        Raises :class:`InvalidRequestException`, and :class:`UnsupportedVersionException` for an unknown type.
        """
        exact, specified = _filter(components)
        return {
            of: dict(quotas)
            for of, quotas in self._quotas.items()
            if (not strict or len(of) == len(exact) + len(specified))
            and all(part in of for part in exact.items())
            and specified <= {kind for kind, _ in of}
        }

    def __bool__(self) -> bool:
        return bool(self._quotas)

    def has(self, key: str) -> bool:
        """Whether any entity has a quota of this kind."""
        return key in self._by_key

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """The quota of the most specific entity that matches a client; None if none does.

        The order is: the user with the client id, with the default client id, and alone; the default user in the same
        three ways; the client id alone; the default client id alone.
        """
        found = self._by_key.get(key)
        if not found:
            return None
        for name in (user, None):
            for client in (client_id, None):
                bound = found.get(((CLIENT_ID, client), (USER, name)))
                if bound is not None:
                    return Limit(bound, user, client_id)
            bound = found.get(((USER, name),))
            if bound is not None:
                return Limit(bound, user, "")
        for client in (client_id, None):
            bound = found.get(((CLIENT_ID, client),))
            if bound is not None:
                return Limit(bound, "", client_id)
        return None

    def ip_rates(self) -> tuple[int, dict[str, int]]:
        """How many connections a second an address may make: by default, and for addresses with their own limit."""
        found = self._by_key.get(CONNECTION_CREATION_RATE, {})
        by_name = {name: int(rate) for ((_, name),), rate in found.items()}
        default = by_name.pop(None, INT_MAX)
        return default, {name: rate for name, rate in by_name.items() if name is not None}


def _check(key: str, value: float, ranges: Mapping[str, _Range]) -> None:
    allowed = ranges.get(key)
    if allowed is None:
        raise InvalidRequestException(f"there is no quota {key!r} for this entity: it may have {', '.join(ranges)}")
    if not 0 < value <= allowed.most:
        raise InvalidRequestException(f"the quota {key} must be more than 0 and at most {allowed.most}, not {value}")
    if allowed.whole and value % 1 > 1e-6:
        raise InvalidRequestException(f"the quota {key} must be a whole number, not {value}")


def _filter(components: Iterable[Component]) -> tuple[dict[str, str | None], set[str]]:
    exact: dict[str, str | None] = {}
    specified: set[str] = set()
    for kind, how, match in components:
        if not kind:
            raise InvalidRequestException("the filter has an empty type")
        if kind not in (USER, CLIENT_ID, IP):
            raise UnsupportedVersionException(f"there are no quotas for {kind!r}: user, client-id and ip have them")
        if kind in exact or kind in specified:
            raise InvalidRequestException(f"the filter has {kind} twice")
        if how not in MatchType.__members__.values():
            raise InvalidRequestException(f"there is no match type {how}")
        if (match is None) == (how == MatchType.EXACT):
            raise InvalidRequestException(f"{kind}: a name is for match type {MatchType.EXACT.value}, and needed there")
        if how == MatchType.SPECIFIED:
            specified.add(kind)
        else:
            exact[kind] = match
    if IP in exact.keys() | specified and len(exact) + len(specified) > 1:
        raise InvalidRequestException("an ip has quotas of its own, and none together with a user or client-id")
    return exact, specified
