"""The broker's configs that may change while it runs, for one node or for all (KIP-226)."""

from __future__ import annotations

from enum import Enum

from aioproducer.broker.configs.broker_config import BrokerConfig
from aioproducer.broker.configs.listener_users import jaas_listener
from aioproducer.broker.configs.listeners import LISTENER_CONFIGS, LISTENER_LIMITS, LISTENER_STORES, listener_config
from aioproducer.broker.configs.topic_config import SERVER_NAMES
from aioproducer.errors import ConfigException

CONNECTION_LIMITS = frozenset(
    {
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "max.connection.creation.rate",
    }
)

POOL_SIZES = frozenset({"num.network.threads", "num.io.threads", "background.threads"})
"""Sizes of pools. One change can at most halve or double each of them."""

LISTENING = frozenset({"listeners", "advertised.listeners", "listener.security.protocol.map"})

DYNAMIC_BROKER_CONFIGS = frozenset(SERVER_NAMES.values()) | CONNECTION_LIMITS | POOL_SIZES | LISTENING


class UpdateMode(Enum):
    """How a config may change while the broker runs, in the words of Kafka's documentation."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    """It may be set for single nodes only."""
    CLUSTER_WIDE = "cluster-wide"
    """It may be set for single nodes or for all nodes."""


def update_mode(name: str) -> UpdateMode:
    """The update mode of the config with this full name."""
    of_listener = listener_config(name)
    if of_listener is not None:
        return UpdateMode.CLUSTER_WIDE if of_listener[0] in LISTENER_LIMITS else UpdateMode.PER_BROKER
    if name in LISTENING or jaas_listener(name) is not None:
        return UpdateMode.PER_BROKER
    return UpdateMode.CLUSTER_WIDE if name in DYNAMIC_BROKER_CONFIGS else UpdateMode.READ_ONLY


def validate_reconfiguration(node_id: int, before: BrokerConfig, after: BrokerConfig) -> None:
    """Raises :class:`ConfigException` if a running node cannot change from one config to the other.

    A listener may be added or removed. Of an open listener only the certificates may change: neither its host and port,
    nor its protocol, nor its other requirements of clients. ``listeners.py`` checks each config by itself, also that
    the inter-broker listener exists and is advertised.
    """
    old, new = before.listening, after.listening
    new.check_ports([node_id])
    known = {end_point.listener: end_point for end_point in old.end_points}
    for end_point in new.end_points:
        name = end_point.listener
        if name not in known:
            continue
        if end_point != known[name]:
            raise _unchangeable(name, "listeners", "where it listens")
        if new.protocols[name] != old.protocols[name]:
            raise _unchangeable(name, "listener.security.protocol.map", "its security protocol")
        for base in LISTENER_CONFIGS:
            fixed = base not in LISTENER_LIMITS and base not in LISTENER_STORES
            if fixed and before.of_listener(name, base) != after.of_listener(name, base):
                raise _unchangeable(name, base, f"its {base}")
        if before.plain_users(name) != after.plain_users(name) or before.token_options(name) != after.token_options(
            name
        ):
            raise _unchangeable(name, "sasl.jaas.config", "its sasl.jaas.config")


def _unchangeable(listener: str, config: str, what: str) -> ConfigException:
    return ConfigException(
        f"config {config!r}: the listener {listener} is open, and {what} cannot change: add a listener of another name,"
        " or restart the broker",
        name=config,
    )
