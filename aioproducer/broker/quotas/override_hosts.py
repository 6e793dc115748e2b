"""The host names in ``max.connections.per.ip.overrides``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from ipaddress import ip_address
from socket import SOCK_STREAM, getaddrinfo

from aioproducer.broker.configs.connection_overrides import host_names
from aioproducer.errors import ConfigException
from aioproducer.tasks.background_threads import BackgroundThreads

log = logging.getLogger(__name__)

_CONFIG = "max.connections.per.ip.overrides"


class OverrideHosts:
    """The addresses of the host names in a node's config, which one of its threads resolves when the config changes.

    When a node starts, a name that cannot be resolved is an error. A later change of the config is answered before its
    names are resolved, as in Kafka. A name that cannot be resolved then keeps the addresses it had, is logged as an
    error and raised by :meth:`settled`. ``on_change`` is called when :attr:`addresses` has changed.
    """

    def __init__(self, node_id: int, threads: BackgroundThreads, on_change: Callable[[], object]) -> None:
        self._node_id = node_id
        self._threads = threads
        self._on_change = on_change
        self.addresses: Mapping[str, tuple[str, ...]] = {}
        """All addresses of each host name."""
        self._resolved = self._wanted = ""
        self._failed: dict[str, ConfigException] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self, overrides: str, essential: Collection[str]) -> None:
        """Resolves all names. Raises :class:`ConfigException` if an ``essential`` one cannot be resolved."""
        self._resolved = self._wanted = overrides
        await self._resolve(overrides)
        for name, error in self._failed.items():
            if name in essential:
                raise error
            self._log(error)

    def follow(self, overrides: str) -> None:
        """Starts to resolve the names of a changed config."""
        self._wanted = overrides
        if self._task is None and overrides != self._resolved:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"hosts-of-node-{self._node_id}")

    async def settled(self) -> None:
        """Returns when all names are resolved. Raises :class:`ConfigException` if one cannot be resolved."""
        while self._task is not None:
            await asyncio.wait([self._task])
        for error in self._failed.values():
            raise error

    async def close(self) -> None:
        """Stops resolving."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        try:
            while self._resolved != self._wanted:
                overrides = self._wanted
                if not await self._resolve(overrides):
                    continue
                self._resolved = overrides
                self._on_change()
                for error in self._failed.values():
                    self._log(error)
        finally:
            self._task = None

    async def _resolve(self, overrides: str) -> bool:
        """Resolves one name after another, so that slow name servers leave the other threads free. Returns False, and
        changes nothing, if the config changes meanwhile."""
        failed: dict[str, ConfigException] = {}
        addresses: dict[str, tuple[str, ...]] = {}
        for name in host_names(overrides):
            try:
                addresses[name] = await self._threads.run(partial(_addresses_of, name))
            except (OSError, UnicodeError) as error:
                reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
                message = f"config {_CONFIG!r}: the host name {name!r} cannot be resolved: {reason}"
                failed[name] = ConfigException(message, name=_CONFIG, value=name)
                if name in self.addresses:
                    addresses[name] = self.addresses[name]
            if self._wanted != overrides:
                return False
        self.addresses, self._failed = addresses, failed
        return True

    def _log(self, error: ConfigException) -> None:
        log.error("node %d: %s", self._node_id, error)


def _addresses_of(name: str) -> tuple[str, ...]:
    found = getaddrinfo(name, None, type=SOCK_STREAM)
    return tuple(dict.fromkeys(str(ip_address(address[0])) for *_, address in found))
