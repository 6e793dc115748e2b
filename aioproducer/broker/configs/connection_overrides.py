"""Parses ``max.connections.per.ip.overrides``: the connection limits of single addresses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import ip_address

# The last label must not be a number: that would be a mistyped IP address.
_HOST_NAME = re.compile(r"(?=.{1,253}\Z)(?:[\w-]{1,63}\.)*(?!\d+\Z)[\w-]{1,63}", re.ASCII)


MAX_HOST_NAMES = 100
"""The most host names in the config. Each is resolved, which may take seconds."""


def max_connections_overrides(text: str) -> dict[str, int]:
    """The limits by IP address or host name. Raises ValueError."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = part.rpartition(":")
        found[_host(host)] = int(count)
        if int(count) < 0:
            raise ValueError(f"{count} is negative")
    if sum(not _is_address(host) for host in found) > MAX_HOST_NAMES:
        raise ValueError(f"more than {MAX_HOST_NAMES} host names")
    return found


def host_names(text: str) -> list[str]:
    """The host names that must be resolved."""
    return [host for host in max_connections_overrides(text) if not _is_address(host)]


def connections_by_address(text: str, addresses: Mapping[str, Collection[str]]) -> dict[str, int]:
    """The limits by address. ``addresses`` has the addresses of the host names; an address that is given itself keeps
    its own limit."""
    overrides = max_connections_overrides(text)
    found = {address: count for host, count in overrides.items() for address in addresses.get(host, ())}
    return found | {host: count for host, count in overrides.items() if _is_address(host)}


def _host(text: str) -> str:
    """The normal form of an address or a host name."""
    try:
        return str(ip_address(text))
    except ValueError:
        if _HOST_NAME.fullmatch(text) is None:
            raise
        return text.lower()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
