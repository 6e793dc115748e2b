"""``bootstrap.servers``: host:port pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from aioproducer.errors import ConfigException
from aioproducer.errors.printable import printable


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        host = printable(self.host)  # metadata names hosts, too
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_addresses(servers: Iterable[str]) -> list[Address]:
    """``host:port``, ``[v6]:port`` or ``PLAINTEXT://host:port``; ConfigException names one that is none of these."""
    return [_parse(server) for server in servers]


def _parse(server: str) -> Address:
    text = server.rpartition("://")[2]
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigException(
            f"bootstrap.servers has {server!r}; it must be host:port with a port from 1 to 65535",
            name="bootstrap.servers",
            value=server,
        )
    return Address(host, int(port))
