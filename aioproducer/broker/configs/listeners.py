"""The listeners that a broker's configs describe: names, ports, protocols, and the addresses that clients get.

``listeners``, ``advertised.listeners``, ``listener.security.protocol.map`` and ``inter.broker.listener.name`` follow
Kafka's rules. The nodes of an embedded cluster share their configs, so a port is that of node 0, and node n has that
port plus n; 0 means any free port on each node. Without a host the listener has the cluster's (in Kafka: all hosts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from aioproducer.broker.configs.end_point import EndPoint
from aioproducer.errors import ConfigException

LISTENER_LIMITS = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""Limits that a listener may have of its own. They may change while it is open."""

LISTENER_STORES = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.certificates",
)
"""Configs of a listener's certificates. They may change while it is open."""

LISTENER_CONFIGS = (
    *LISTENER_LIMITS,
    *LISTENER_STORES,
    "ssl.client.auth",
    "ssl.protocol",
    "ssl.enabled.protocols",
    "ssl.cipher.suites",
    "sasl.enabled.mechanisms",
    "sasl.server.max.receive.size",
    "connections.max.reauth.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.scope.claim.name",
)
"""All configs that a listener may have of its own, as ``listener.name.<name in lower case>.max.connections``."""

DEFAULT_LISTENERS = "PLAINTEXT://:0"
DEFAULT_PROTOCOLS = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"

_PLAINTEXT = "PLAINTEXT"
_PROTOCOLS = (_PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_END_POINT = re.compile(r"([A-Za-z0-9_-]+)://(?:\[([0-9A-Fa-f:.%]+)\]|([^\[\]:/]*)):([0-9]{1,5})")
_CONFIG = re.compile(
    r"listener[._]name[._](.+)[._](" + "|".join(name.replace(".", "[._]") for name in LISTENER_CONFIGS) + ")"
)
LONGEST_NAME = 1000
"""The most characters of a config's name. Clients send any name, and matching the pattern takes time in proportion."""

_EVERYWHERE = frozenset({"0.0.0.0", "::"})
_LARGEST_PORT = 65535


class Listeners(NamedTuple):
    """``end_points`` are those of node 0, in the order of the config. ``advertised`` has the addresses for clients."""

    end_points: tuple[EndPoint, ...]
    advertised: Mapping[str, EndPoint]
    inter_broker: str
    protocols: Mapping[str, str]
    """The security protocol of each listener, by name."""

    @property
    def names(self) -> list[str]:
        return [end_point.listener for end_point in self.end_points]

    def of_node(self, node_id: int) -> tuple[EndPoint, ...]:
        """The end points at which a node listens."""
        return tuple(_of_node(end_point, node_id) for end_point in self.end_points)

    def advertised_of_node(self, node_id: int, open: Mapping[str, EndPoint]) -> dict[str, EndPoint]:
        """The addresses that clients get for a node's ``open`` listeners, without unadvertised ones."""
        found = {}
        for name, end_point in self.advertised.items():
            if name in open:
                _, host, port = _of_node(end_point, node_id)
                found[name] = EndPoint(name, host or open[name].host, port or open[name].port)
        return found

    def check_ports(self, node_ids: Iterable[int]) -> None:
        """Raises :class:`ConfigException` if two nodes would have the same port, or one an impossible port."""
        taken: dict[int, tuple[str, int]] = {}
        for node_id in node_ids:
            for name, _, port in self.of_node(node_id):
                if port > _LARGEST_PORT:
                    raise _refused("listeners", f"listener {name} of node {node_id} would have the port {port}")
                if port and port in taken:
                    other, of = taken[port]
                    raise _refused(
                        "listeners",
                        f"listener {name} of node {node_id} and {other} of node {of} would have the same port {port}:"
                        " each node has the ports of node 0 plus its id",
                    )
                taken[port] = name, node_id


def listeners_of(
    listeners: Sequence[str], advertised: Sequence[str], protocols: str, inter_broker: str | None
) -> Listeners:
    """Parses the four configs. Raises :class:`ConfigException`, which names the config and its mistake."""
    end_points = _end_points("listeners", listeners)
    if not end_points:
        raise _refused("listeners", "it is empty: a broker needs at least one listener")
    spoken = _protocols_of(end_points, protocols)
    ports = [end_point.port for end_point in end_points.values() if end_point.port]
    if len(set(ports)) < len(ports):
        raise _refused("listeners", "two of them have the same port")
    addresses = _end_points("advertised.listeners", advertised) or end_points
    for name, (_, host, _) in addresses.items():
        if name not in end_points:
            raise _refused("advertised.listeners", f"{name} is not among listeners: {', '.join(end_points)}")
        if host in _EVERYWHERE:
            raise _refused(
                "advertised.listeners", f"clients cannot connect to {host}: give {name} a host that clients know"
            )
    between = (inter_broker or _PLAINTEXT).upper()
    if between not in addresses:
        missing = f"there is no listener {between}" if between not in end_points else f"{between} is not advertised"
        raise _refused("inter.broker.listener.name", f"{missing}: it has to be one of {', '.join(addresses)}")
    return Listeners(tuple(end_points.values()), addresses, between, spoken)


def listener_config(name: str, listeners: Iterable[str] | None = None) -> tuple[str, str] | None:
    """The config and the listener in a name ``listener.name.<listener>.<config>``; None for any other name.

    Underscores count as dots. With ``listeners``, raises :class:`ConfigException` for a listener not among them.
    """
    found = None if len(name) > LONGEST_NAME else _CONFIG.fullmatch(name)
    if found is None:
        return None
    written, base = found.groups()
    listener = written.upper() if listeners is None else listener_named(name, written, listeners)
    return base.replace("_", "."), listener


def listener_named(config: str, written: str, listeners: Iterable[str]) -> str:
    """The listener that a config's name means. Raises :class:`ConfigException` if there is none of that name."""
    known = {listener.replace("_", "."): listener for listener in listeners}
    listener = known.get(written.upper().replace("_", "."))
    if listener is None:
        raise _refused(config, f"there is no listener {written.upper()}: listeners has {', '.join(known.values())}")
    return listener


def listener_config_name(listener: str, base: str) -> str:
    """The full name of a listener's own config."""
    return f"listener.name.{listener.lower()}.{base}"


def _end_points(config: str, texts: Sequence[str]) -> dict[str, EndPoint]:
    found: dict[str, EndPoint] = {}
    for text in texts:
        parts = _END_POINT.fullmatch(text)
        if parts is None or int(parts[4]) > _LARGEST_PORT:
            raise _refused(config, f"{text!r} is not NAME://host:port, as in PLAINTEXT://127.0.0.1:9092")
        name = parts[1].upper()
        if name in found:
            raise _refused(config, f"it has {name} twice")
        found[name] = EndPoint(name, parts[2] or parts[3], int(parts[4]))
    return found


def _protocols_of(names: Iterable[str], text: str) -> dict[str, str]:
    config = "listener.security.protocol.map"
    protocols = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = pair.rpartition(":")
        if not name or protocol.upper() not in _PROTOCOLS:
            raise _refused(config, f"{pair!r} is not NAME:PROTOCOL with one of {', '.join(_PROTOCOLS)}")
        if name.upper() in protocols:
            raise _refused(config, f"it has {name.upper()} twice")
        protocols[name.upper()] = protocol.upper()
    spoken = {}
    for name in names:
        if name not in protocols:
            raise _refused(config, f"it has no protocol for the listener {name}: add {name}:{_PLAINTEXT}")
        spoken[name] = protocols[name]
    return spoken


def _of_node(end_point: EndPoint, node_id: int) -> EndPoint:
    return end_point._replace(port=end_point.port + node_id) if end_point.port else end_point


def _refused(config: str, why: str) -> ConfigException:
    return ConfigException(f"config {config!r}: {why}", name=config)
