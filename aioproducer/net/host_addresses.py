"""The addresses that name resolution finds for a broker's host (client.dns.lookup; KIP-235, KIP-302, KIP-899)."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Sequence

from aioproducer.net.addresses import Address

log = logging.getLogger(__name__)


async def resolve(address: Address) -> list[str]:
    """The IP addresses of the host, each once, in the order the system gives them; OSError if it has none."""
    if _is_ip(address.host):
        return [address.host]
    found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    if not found:
        raise OSError(f"{address.host} has no address")
    return list(dict.fromkeys(str(sockaddr[0]) for _, _, _, _, sockaddr in found))


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def in_turn(found: Sequence[str], last: str | None) -> list[str]:
    """The order in which to try them: the address of the last, lost connection comes after all others."""
    if last not in found:
        return list(found)
    after = found.index(last) + 1
    return [*found[after:], *found[:after]]


async def canonical(address: Address) -> list[Address]:
    """The host under the canonical names of its IP addresses, as Kerberos needs them; unchanged if that fails."""
    loop = asyncio.get_running_loop()
    try:
        names = [await loop.getnameinfo((host, address.port), socket.NI_NUMERICSERV) for host in await resolve(address)]
    except OSError as error:
        log.warning("bootstrap.servers: %s has no canonical name: %s", address, error.strerror or error)
        return [address]
    return [Address(name, address.port) for name, _ in dict.fromkeys(names)]
