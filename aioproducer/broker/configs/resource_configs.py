"""The configs of groups and of client metrics subscriptions (KIP-714).

Those of groups are stored and described, but have no effect: they are for the protocols of KIP-848, KIP-932 and
KIP-1071, which this broker does not support, but tools set them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from aioproducer.broker.configs.client_match import MAX_MATCH, SELECTORS, ClientMatch
from aioproducer.broker.configs.config_changes import ConfigChange, changed
from aioproducer.configs.config_def import (
    ANY,
    ConfigKey,
    Type,
    Valid,
    at_least,
    between,
    checked,
    key,
    one_of,
    table,
    unknown,
)
from aioproducer.errors import (
    ConfigException,
    InvalidConfigurationException,
    InvalidRequestException,
    PolicyViolationException,
)

MAX_RESOURCES = 10_000
"""The most groups and subscriptions with configs. Each takes memory that no config limits."""


class Owner(IntEnum):
    """The kind of resource that has configs (Kafka's ``ConfigResource.Type``)."""

    CLIENT_METRICS = 16
    GROUP = 32


_NO_EFFECT = "Stored without effect in the embedded broker."
_SESSION, _HEARTBEAT = between(45000, 60000), between(5000, 15000)


@dataclass(frozen=True, slots=True)
class _GroupConfig:
    consumer_assignment_interval_ms: int = key(Type.INT, 1000, at_least(0), _NO_EFFECT)
    consumer_heartbeat_interval_ms: int = key(Type.INT, 5000, _HEARTBEAT, _NO_EFFECT)
    consumer_session_timeout_ms: int = key(Type.INT, 45000, _SESSION, _NO_EFFECT)
    share_assignment_interval_ms: int = key(Type.INT, 1000, at_least(0), _NO_EFFECT)
    share_auto_offset_reset: str = key(Type.STRING, "latest", ANY, _NO_EFFECT)
    share_delivery_count_limit: int = key(Type.INT, 5, between(2, 10), _NO_EFFECT)
    share_heartbeat_interval_ms: int = key(Type.INT, 5000, _HEARTBEAT, _NO_EFFECT)
    share_isolation_level: str = key(
        Type.STRING, "read_uncommitted", one_of("read_committed", "read_uncommitted"), _NO_EFFECT
    )
    share_partition_max_record_locks: int = key(Type.INT, 2000, between(100, 10000), _NO_EFFECT)
    share_record_lock_duration_ms: int = key(Type.INT, 30000, between(15000, 60000), _NO_EFFECT)
    share_renew_acknowledge_enable: bool = key(Type.BOOLEAN, True, ANY, _NO_EFFECT)
    share_session_timeout_ms: int = key(Type.INT, 45000, _SESSION, _NO_EFFECT)
    streams_assignment_interval_ms: int = key(Type.INT, 1000, at_least(0), _NO_EFFECT)
    streams_heartbeat_interval_ms: int = key(Type.INT, 5000, _HEARTBEAT, _NO_EFFECT)
    streams_initial_rebalance_delay_ms: int = key(Type.INT, 3000, at_least(0), _NO_EFFECT)
    streams_num_standby_replicas: int = key(Type.INT, 0, between(0, 2), _NO_EFFECT)
    streams_session_timeout_ms: int = key(Type.INT, 45000, _SESSION, _NO_EFFECT)


MAX_SUBSCRIPTIONS = 1000
"""The most client metrics subscriptions. Each new client is matched with all of them."""


def _are_selectors(selectors: tuple[str, ...]) -> bool:
    try:
        ClientMatch(selectors)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ClientMetricsConfig:
    """The configs of a subscription to the metrics of clients (Kafka's ``ClientMetricsConfigs``)."""

    interval_ms: int = key(Type.INT, 300000, ANY, "How often clients push, in milliseconds: 100 to 3600000.")
    match: tuple[str, ...] = key(
        Type.LIST,
        (),
        Valid(f"selector=pattern, of {', '.join(SELECTORS)}, with {MAX_MATCH} characters at most", _are_selectors),
        "Which clients: all those that match every pattern. Without patterns, all clients.",
    )
    metrics: tuple[str, ...] = key(Type.LIST, (), ANY, "Prefixes of the names of the metrics wanted, or * for all.")


_ROWS: Mapping[Owner, Mapping[str, ConfigKey]] = {
    Owner.GROUP: table(_GroupConfig),
    Owner.CLIENT_METRICS: table(ClientMetricsConfig),
}


def resource_config(owner: Owner, name: str) -> ConfigKey | None:
    """The definition of a config; None for a name that is unknown."""
    return _ROWS[owner].get(name)


_INTERVALS = range(100, 3_600_001)


class ResourceConfigs:
    """Configs by owner and name. All nodes share them; ``on_change`` is called before they change."""

    def __init__(self, on_change: Callable[[Owner, str, Mapping[str, str]], object] = lambda *change: None) -> None:
        self._on_change = on_change
        self._own: dict[tuple[Owner, str], Mapping[str, str]] = {}
        self.version = 0
        """Rises with every change of a subscription."""

    def of(self, owner: Owner, name: str) -> Mapping[str, str]:
        """The configs that are set. Raises :class:`InvalidRequestException` for an empty name."""
        if not name:
            raise InvalidRequestException("the name of the group or subscription is empty")
        return self._own.get((owner, name), {})

    def names(self, owner: Owner) -> list[str]:
        """Those that have configs, in the order in which they first had."""
        return [name for kind, name in self._own if kind is owner]

    def rows(self, owner: Owner, name: str) -> Iterator[tuple[ConfigKey, str | None]]:
        """The definition of each config, with its value if it is set."""
        own = self.of(owner, name)
        return ((row, own.get(config)) for config, row in _ROWS[owner].items())

    def alter(self, owner: Owner, name: str, changes: Iterable[ConfigChange], *, validate_only: bool) -> None:
        """Makes all changes, or raises the error that Kafka answers and makes none."""
        changes, rows = list(changes), _ROWS[owner]
        before = self.of(owner, name)
        for change in changes:
            if change.name not in rows and not change.deletes:
                error = InvalidConfigurationException if owner is Owner.GROUP else InvalidRequestException
                raise error(str(unknown(change.name, rows, owner.name.lower())))
        configs = changed(before, changes, rows)
        for config, value in configs.items():
            try:
                valid = checked(rows[config], value)
            except ConfigException as error:
                raise InvalidConfigurationException(str(error)) from error
            if config == "interval.ms" and valid not in _INTERVALS:
                raise InvalidRequestException(f"interval.ms is {value}; it must be from 100 to 3600000")
        if validate_only:
            return
        if not before and configs and len(self._own) >= MAX_RESOURCES:
            raise PolicyViolationException(f"{MAX_RESOURCES} groups and subscriptions have configs: no more can have")
        if not before and owner is Owner.CLIENT_METRICS and len(self.names(owner)) >= MAX_SUBSCRIPTIONS:
            raise PolicyViolationException(f"there are {MAX_SUBSCRIPTIONS} subscriptions: no more can be made")
        self._on_change(owner, name, configs)
        self.restore(owner, name, configs)

    def restore(self, owner: Owner, name: str, configs: Mapping[str, str]) -> None:
        """Restores the configs that were set before a restart."""
        if configs:
            self._own[owner, name] = configs
        else:
            self._own.pop((owner, name), None)
        if owner is Owner.CLIENT_METRICS:
            self.version += 1

    def subscription(self, name: str) -> ClientMetricsConfig:
        """The configs of a subscription, parsed."""
        own = self.of(Owner.CLIENT_METRICS, name)
        rows = _ROWS[Owner.CLIENT_METRICS]
        values = {config.replace(".", "_"): checked(rows[config], value) for config, value in own.items()}
        return ClientMetricsConfig(**values)
