"""``bootstrap.servers``: host:port pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aioproducer.errors import ConfigException
from aioproducer.errors.printable import printable

_CONFIG = "bootstrap.servers"


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = printable(self.host)  # metadata names hosts, too
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_addresses(servers: Iterable[str]) -> list[Address]:
    """``host:port``, ``[v6]:port`` or ``PLAINTEXT://host:port``; ConfigException names one that is none of these.

    As in Kafka, the text before ``://``, such as a listener's name, has no effect. ``kafka://`` is refused: its writer
    expects the URL to have one. An address with a user and a password is never shown.
    """
    servers = list(servers)
    if any("@" in server for server in servers):  # a password with a comma is in several of them
        raise ConfigException(
            "bootstrap.servers has an address with an @, which is not shown because it may have a password: give "
            "host:port, and the user and the password in sasl.plain.username and sasl.plain.password",
            name=_CONFIG,
        )
    return [_parse(server) for server in servers]


def _parse(server: str) -> Address:
    scheme, _, text = server.rpartition("://")
    if scheme.startswith("kafka"):  # KAFKA:// may be a listener
        raise ConfigException(
            f"bootstrap.servers has {server!r}, which is a URL; give host:port, and set security.protocol if "
            "connections are encrypted",
            name=_CONFIG,
            value=server,
        )
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigException(
            f"bootstrap.servers has {server!r}; it must be host:port with a port from 1 to 65535",
            name=_CONFIG,
            value=server,
        )
    return Address(host, int(port))
