"""The effective configs of the embedded cluster's nodes and topics, and the source of each value.

The value of a broker's config comes from the first of these that sets it: the dynamic configs of the node, those of all
nodes, the configs that the cluster was started with, and the defaults (KIP-226). A topic's own config overrides its
leader's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from aioproducer.broker.configs.broker_config import BROKER_CONFIGS, BrokerConfig, broker_config
from aioproducer.broker.configs.config_changes import ConfigChange, changed
from aioproducer.broker.configs.dynamic_configs import POOL_SIZES, UpdateMode, update_mode, validate_reconfiguration
from aioproducer.broker.configs.listener_users import jaas_listener, token_options_of, users_of
from aioproducer.broker.configs.listeners import listener_config, listener_config_name, listener_named
from aioproducer.broker.configs.topic_config import SERVER_NAMES, TOPIC_CONFIGS, TopicConfig
from aioproducer.configs.config_def import ConfigKey, as_text, checked, parse, unknown
from aioproducer.errors import ConfigException, InvalidConfigurationException, InvalidRequestException

ALL_NODES = ""
"""The cluster-wide default, in place of a node's id."""


class ConfigSource(IntEnum):
    """The source of a value (``DescribeConfigsResponse.ConfigSource``)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """The value of a config in one of its sources."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A config and all its values, the effective one first. Without synonyms it has its default."""

    key: ConfigKey
    synonyms: tuple[Synonym, ...]

    @property
    def value(self) -> str | None:
        return self.synonyms[0].value if self.synonyms else _text(self.key.default)

    @property
    def source(self) -> ConfigSource:
        return self.synonyms[0].source if self.synonyms else ConfigSource.DEFAULT


class Reconfigurable(Protocol):
    """A running node whose configs may change (Kafka's ``BrokerReconfigurable``)."""

    @property
    def node_id(self) -> int: ...

    def validate_reconfiguration(self, config: BrokerConfig) -> None:
        """Raises :class:`ConfigException` if the node cannot apply these configs."""

    def reconfigure(self) -> None:
        """Applies the changed configs."""


class ClusterConfigs:
    """``static`` is what the cluster was started with; the rest changes while it runs."""

    def __init__(self, static: BrokerConfig) -> None:
        self.static = static
        # By node id as text, or ALL_NODES.
        self._dynamic: dict[str, Mapping[str, str]] = {}
        self._running: list[Reconfigurable] = []
        # The merged config of each node, until configs change.
        self._brokers: dict[int | None, BrokerConfig] = {}
        self._topics: dict[int | None, TopicConfig] = {}

    def follow(self, node: Reconfigurable) -> None:
        """Registers a running node, which validates its new configs and applies every change of brokers' configs."""
        self._running.append(node)

    def follow_no_more(self, node: Reconfigurable) -> None:
        if node in self._running:
            self._running.remove(node)

    def alter(self, node: str, changes: Iterable[ConfigChange], *, validate_only: bool = False) -> None:
        """Changes configs of one node, or of :data:`ALL_NODES`. Raises the error that Kafka answers, before anything
        changes."""
        changes = list(changes)
        _check_modes(node, changes)
        try:
            configs = self._changed(node, changes)
            for name, value in configs.items():
                checked(_row(name), value)
            self._check_pool_sizes(node, configs)
            if node != ALL_NODES:
                self._check_node(int(node), self._merged({**self.dynamic(ALL_NODES), **configs}))
        except ConfigException as error:
            raise InvalidRequestException(str(error)) from error
        if not validate_only:
            self.restore(node, configs)
            for running in tuple(self._running):
                running.reconfigure()

    def _changed(self, node: str, changes: Iterable[ConfigChange]) -> Mapping[str, str]:
        """The configs that are set for a node after the changes. A removed listener loses its own configs."""
        plain: list[ConfigChange] = []
        own: list[ConfigChange] = []
        for change in changes:
            (plain if _listener_of(change.name) is None else own).append(change)
        configs = changed(self.dynamic(node), plain, BROKER_CONFIGS)
        # A listener's own configs may be set together with the listener.
        listeners = [name for each in (self.dynamic(node), configs) for name in self._listeners(node, each)]
        own = [change._replace(name=_full_name(change.name, listeners)) for change in own]
        configs = changed(configs, own, {change.name: _row(change.name) for change in own})
        left = {None, *map(_plain, self._listeners(node, configs))}
        return {name: value for name, value in configs.items() if _listener_of(name) in left}

    def _listeners(self, node: str, configs: Mapping[str, str]) -> list[str]:
        """The names of a node's listeners if ``configs`` were set for it; those of every node for ALL_NODES."""
        if node != ALL_NODES:
            return self._merged({**self.dynamic(ALL_NODES), **configs}).listening.names
        nodes: list[int | None] = [None, *(int(each) for each in self._dynamic if each != ALL_NODES)]
        return [name for each in nodes for name in self.broker(each).listening.names]

    def _check_node(self, node_id: int, after: BrokerConfig) -> None:
        validate_reconfiguration(node_id, self.broker(node_id), after)
        for running in self._running:
            if running.node_id == node_id:
                running.validate_reconfiguration(after)

    def _check_pool_sizes(self, node: str, configs: Mapping[str, str]) -> None:
        before = self.broker(int(node) if node else None)
        sizes = {name: int(getattr(before, name.replace(".", "_"))) for name in sorted(POOL_SIZES)}
        for listener in before.listening.names:
            sizes[listener_config_name(listener, "num.network.threads")] = before.network_threads(listener)
        for name, now in sizes.items():
            wanted = int(configs.get(name, now))
            if not now / 2 <= wanted <= now * 2:
                raise InvalidRequestException(
                    f"config {name!r} is {now}: one change can at most halve or double it, not set it to {wanted}; "
                    "change it in steps"
                )

    def restore(self, node: str, configs: Mapping[str, str]) -> None:
        """Restores the dynamic configs of a node from before a restart."""
        self._dynamic[node] = configs
        self._brokers.clear()
        self._topics.clear()

    def dynamic(self, node: str) -> Mapping[str, str]:
        """The dynamic configs of one node, or of :data:`ALL_NODES`."""
        return self._dynamic.get(node, {})

    def differs(self, node_id: int) -> bool:
        """Whether the node has dynamic configs of its own."""
        return bool(self.dynamic(str(node_id)))

    def broker(self, node_id: int | None = None) -> BrokerConfig:
        """The effective configs of a node; without an id, those of a node without configs of its own."""
        known = self._brokers.get(node_id)
        if known is None:
            of_node = {} if node_id is None else self.dynamic(str(node_id))
            known = self._brokers[node_id] = self._merged({**self.dynamic(ALL_NODES), **of_node})
        return known

    def _merged(self, dynamic: Mapping[str, str]) -> BrokerConfig:
        """The configs that the cluster was started with, overridden by the dynamic ones."""
        values: dict[str, Any] = {name: getattr(self.static, name.replace(".", "_")) for name in BROKER_CONFIGS}
        of_listeners = dict(self.static.of_listeners)
        jaas: dict[str, str] = {}
        for name, value in dynamic.items():
            if name in BROKER_CONFIGS:
                values[name] = value
            elif listener_config(name) is not None:
                of_listeners[name] = checked(_row(name), value)
            else:
                jaas[name] = value
        config = parse(BrokerConfig, values, owner="broker")
        users, token_options = self.static.users_of_listeners, self.static.token_options_of_listeners
        if jaas:
            known = set(map(_plain, config.listening.names))
            there = {name: value for name, value in jaas.items() if _listener_of(name) in known}
            users = {**users, **users_of(there, config.listening.names)}
            token_options = {**token_options, **token_options_of(there, config.listening.names)}
        return replace(
            config,
            of_listeners=of_listeners,
            users_of_listeners=users,
            token_options_of_listeners=token_options,
        )

    def topic(self, configs: Mapping[str, str], node_id: int | None = None) -> TopicConfig:
        """The effective configs of a topic on a node. Raises :class:`InvalidConfigurationException`."""
        if configs:
            return TopicConfig.of(configs, self.broker(node_id))
        known = self._topics.get(node_id)
        if known is None:
            known = self._topics[node_id] = TopicConfig.of(configs, self.broker(node_id))
        return known

    def broker_entries(self, node_id: int) -> list[ConfigEntry]:
        """All configs of a node, and the configs of single listeners that are set."""
        set_here = {**self.dynamic(ALL_NODES), **self.dynamic(str(node_id)), **self.static.of_listeners}
        of_listeners = sorted(name for name in set_here if name not in BROKER_CONFIGS)
        keys = [*BROKER_CONFIGS.values(), *map(_row, of_listeners)]
        return [ConfigEntry(key, self._synonyms(key, node_id)) for key in keys]

    def default_entries(self) -> list[ConfigEntry]:
        """The dynamic configs of :data:`ALL_NODES`."""
        return [
            ConfigEntry(_row(name), (_dynamic_default(name, value),)) for name, value in self.dynamic(ALL_NODES).items()
        ]

    def topic_entries(self, configs: Mapping[str, str], node_id: int) -> list[ConfigEntry]:
        """All configs of a topic on a node. Those without effect have no synonyms among the broker's."""
        entries = []
        for name, key in sorted(TOPIC_CONFIGS.items()):
            server = SERVER_NAMES.get(name)
            synonyms = () if server is None else self._synonyms(BROKER_CONFIGS[server], node_id)
            if name in configs:
                own = as_text(checked(key, configs[name]))
                synonyms = (Synonym(name, own, ConfigSource.TOPIC), *synonyms)
            entries.append(ConfigEntry(key, synonyms))
        return entries

    def _synonyms(self, key: ConfigKey, node_id: int) -> tuple[Synonym, ...]:
        """The values of a config; for a listener's own config, also those of the broker's."""
        own = self._set(key, node_id)
        of_listener = listener_config(key.name)
        if of_listener is not None:
            return (*own, *self._synonyms(BROKER_CONFIGS[of_listener[0]], node_id))
        return own if key.default is None else (*own, Synonym(key.name, as_text(key.default), ConfigSource.DEFAULT))

    def _set(self, key: ConfigKey, node_id: int) -> tuple[Synonym, ...]:
        name = key.name
        found = []
        own = self.dynamic(str(node_id)).get(name)
        if own is not None:
            found.append(Synonym(name, as_text(checked(key, own)), ConfigSource.DYNAMIC_BROKER))
        of_all = self.dynamic(ALL_NODES).get(name)
        if of_all is not None:
            found.append(_dynamic_default(name, of_all))
        field = name.replace(".", "_")
        static = (
            getattr(self.static, field) if name in BROKER_CONFIGS else self.static.of_listeners.get(name, key.default)
        )
        if static != key.default:
            found.append(Synonym(name, as_text(static), ConfigSource.STATIC_BROKER))
        return tuple(found)


def _check_modes(node: str, changes: Iterable[ConfigChange]) -> None:
    modes = {change.name: update_mode(change.name) for change in changes}
    fixed = [name for name, mode in modes.items() if mode is UpdateMode.READ_ONLY]
    for name in fixed:
        if name not in BROKER_CONFIGS:
            # Kafka stores unknown names, for plugins of the user; here they are refused.
            raise InvalidRequestException(str(unknown(name, BROKER_CONFIGS, "broker")))
    if fixed:
        raise InvalidRequestException(f"these configs cannot be changed while the broker runs: {fixed}")
    single = [name for name, mode in modes.items() if mode is UpdateMode.PER_BROKER]
    if node == ALL_NODES and single:
        raise InvalidRequestException(f"these configs can be set only for single nodes, not for all: {single}")


def _plain(listener: str) -> str:
    """The name of a listener within names of configs, where underscores count as dots."""
    return listener.upper().replace("_", ".")


def _listener_of(name: str) -> str | None:
    """The listener of a listener's own config; None for a config of the broker."""
    found = listener_config(name)
    if found is not None:
        return _plain(found[1])
    jaas = jaas_listener(name)
    return None if jaas is None else _plain(jaas[0])


def _full_name(name: str, listeners: Iterable[str]) -> str:
    """The normal form of a config's name. Raises :class:`ConfigException`."""
    found, jaas = listener_config(name), jaas_listener(name)
    if found is not None:
        return listener_config_name(listener_named(name, found[1], listeners), found[0])
    assert jaas is not None
    written, mechanism = jaas
    return listener_config_name(listener_named(name, written, listeners), f"{mechanism.lower()}.sasl.jaas.config")


def _row(name: str) -> ConfigKey:
    row = broker_config(name)
    assert row is not None, name
    return row


def _text(value: object) -> str | None:
    return None if value is None else as_text(value)


def _dynamic_default(name: str, value: str) -> Synonym:
    return Synonym(name, as_text(checked(_row(name), value)), ConfigSource.DYNAMIC_DEFAULT_BROKER)


def altered_topic(current: Mapping[str, str], changes: Iterable[ConfigChange]) -> Mapping[str, str]:
    """A topic's own configs after ``changes``. Raises :class:`InvalidConfigurationException` if an unknown config is
    set; deleting a config that is not set is no error, as in Kafka."""
    changes = list(changes)
    for change in changes:
        if change.name not in TOPIC_CONFIGS and not change.deletes:
            raise InvalidConfigurationException(str(unknown(change.name, TOPIC_CONFIGS, "topic")))
    return changed(current, changes, TOPIC_CONFIGS)
