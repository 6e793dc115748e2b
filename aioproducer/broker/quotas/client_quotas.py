"""Which quotas users, client ids and addresses have: what AlterClientQuotas sets and DescribeClientQuotas returns.

Kafka's controller checks and keeps them (``ClientQuotaControlManager``), its brokers look them up
(``ClientQuotaManager``). Here all nodes share one object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from ipaddress import ip_address
from typing import NamedTuple

from aioproducer.configs.config_def import INT_MAX, LONG_MAX
from aioproducer.errors import InvalidRequestException, UnsupportedVersionException

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Entity = tuple[tuple[str, str | None], ...]
"""Types and names in the order of the types; None is the default, for all without a quota under their own name."""


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
    """As a client named it. Raises :class:`InvalidRequestException` for what is no entity."""
    found: dict[str, str | None] = {}
    for kind, name in parts:
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequestException(f"there are no quotas for {kind!r}: user, client-id and ip have them")
        if kind in found:
            raise InvalidRequestException(f"the entity has {kind} twice")
        if name == "":
            raise InvalidRequestException(f"the entity's {kind} is empty")
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
    """Whatever the name."""


class Component(NamedTuple):
    """One condition of a filter."""

    entity_type: str
    match_type: int
    match: str | None


class Limit(NamedTuple):
    """The quota that counts for a client, and who shares it."""

    bound: float
    user: str
    """Empty if it is that of a client id, whoever the user is."""
    client_id: str
    """Empty if it is that of a user, whatever the client id."""


class ClientQuotas:
    """Quotas by entity. Objects that must know when they change add themselves to ``listeners``."""

    def __init__(self) -> None:
        self._quotas: dict[Entity, dict[str, float]] = {}
        # The same by quota: a client is looked up per quota, and most quotas are not set for anyone.
        self._by_key: dict[str, dict[Entity, float]] = {}
        self.listeners: set[Callable[[], object]] = set()

    def alter(self, of: Entity, changes: Sequence[tuple[str, float | None]], *, validate_only: bool = False) -> None:
        """Sets quotas of one entity, all or none; None removes one. Raises :class:`InvalidRequestException`."""
        ranges = _OF_ADDRESSES if of[0][0] == IP else _OF_CLIENTS
        seen = set()
        for key, value in changes:
            if key in seen:
                raise InvalidRequestException(f"the quota {key} is changed twice")
            seen.add(key)
            if value is not None:
                _check(key, value, ranges)
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
        for listener in tuple(self.listeners):
            listener()

    def describe(self, components: Iterable[Component], *, strict: bool) -> dict[Entity, Mapping[str, float]]:
        """The entities that match all of the components; with ``strict`` those that have nothing beside them.

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
        """Whether anybody has a quota of this kind."""
        return key in self._by_key

    def limit(self, key: str, user: str, client_id: str) -> Limit | None:
        """The quota of the most specific entity that a client is of; None if it has none.

        First what names the user: with the client id, with any client id, alone. Then the same for the default user,
        and at last the client id alone, and the default one.
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
        """Connections a second that an address may make: in general, and those that have limits of their own."""
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
