"""Configs of topics, brokers and subscriptions, as the admin client describes and alters them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Self

from aioproducer.errors import IllegalArgumentException
from aioproducer.protocol.messages.describe_configs import DescribeConfigsResourceResult
from aioproducer.protocol.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource

_TOPIC, _BROKER, _CLIENT_METRICS = 2, 4, 16
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


class ConfigResource(NamedTuple):
    """Something that has configs. ``type`` is Kafka's number for its kind (``ConfigResource.Type``)."""

    type: int
    name: str

    @classmethod
    def topic(cls, name: str) -> Self:
        return cls(_TOPIC, name)

    @classmethod
    def broker(cls, node_id: int) -> Self:
        """The configs of one broker."""
        return cls(_BROKER, str(node_id))

    @classmethod
    def all_brokers(cls) -> Self:
        """The dynamic configs of every broker that has no value of its own."""
        return cls(_BROKER, "")

    @classmethod
    def client_metrics(cls, name: str) -> Self:
        """The subscription with this name to metrics of clients (KIP-714). Its configs are ``metrics``, ``interval.ms``
        and ``match``; it exists while one of them is set."""
        return cls(_CLIENT_METRICS, name)

    @property
    def node_id(self) -> int | None:
        """The broker that answers for it; None if any broker does."""
        return int(self.name) if self.type == _BROKER and self.name else None

    def __str__(self) -> str:
        if self.type == _BROKER:
            return f"broker {self.name}" if self.name else "all brokers"
        if self.type == _CLIENT_METRICS:
            return f"client metrics subscription {self.name!r}"
        return f"topic {self.name!r}" if self.type == _TOPIC else f"resource {self.name!r} of type {self.type}"


def by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """The resources by the node that answers for them; None: any node does.

    Raises IllegalArgumentException for a resource whose type is no number.
    """
    nodes: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        if not isinstance(resource.type, int):
            raise IllegalArgumentException(
                f"the type of {resource.name!r} is {resource.type!r}; it must be Kafka's number for the kind of "
                "resource: use ConfigResource.topic, broker, all_brokers or client_metrics"
            )
        nodes.setdefault(resource.node_id, []).append(resource)
    return nodes


class Append(NamedTuple):
    """Adds to a config that is a list; several items are separated by commas."""

    value: str


class Subtract(NamedTuple):
    """Removes from a config that is a list; several items are separated by commas."""

    value: str


ConfigChange = str | Append | Subtract | None
"""A config's new value, or what to do to its list; None resets it."""


class ConfigSource(Enum):
    """Where a value comes from (Kafka's ``ConfigEntry.ConfigSource``)."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:
        return cls.UNKNOWN  # from a newer broker


class ConfigSynonym(NamedTuple):
    """One of the places where a config has a value."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config. ``value`` is None if it is secret."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]
    """All its values, the effective one first."""
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


def entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    """A config in a broker's answer."""
    return ConfigEntry(
        config.name,
        config.value,
        ConfigSource(config.config_source),
        config.read_only,
        config.is_sensitive,
        tuple(ConfigSynonym(one.name, one.value, ConfigSource(one.source)) for one in config.synonyms),
        config.documentation,
    )


def alteration(resource: ConfigResource, changes: Mapping[str, ConfigChange]) -> AlterConfigsResource:
    """A resource with its changes, for a request. Raises IllegalArgumentException for a value that is no text."""
    for name, change in changes.items():
        value = change.value if isinstance(change, Append | Subtract) else change
        if value is not None and not isinstance(value, str):  # which is not shown, as it may be secret
            raise IllegalArgumentException(
                f"config {name!r} of {resource} is of type {type(value).__name__}; it must be a text, also for a "
                "number, or None to reset it"
            )
    return AlterConfigsResource(
        resource.type, resource.name, [_alterable(name, change) for name, change in changes.items()]
    )


def _alterable(name: str, change: ConfigChange) -> AlterableConfig:
    match change:
        case None:
            return AlterableConfig(name, _DELETE, None)
        case Append(value):
            return AlterableConfig(name, _APPEND, value)
        case Subtract(value):
            return AlterableConfig(name, _SUBTRACT, value)
        case value:
            return AlterableConfig(name, _SET, value)
