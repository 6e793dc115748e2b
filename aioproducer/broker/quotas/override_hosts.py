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
    """Knows the addresses of the host names that a node's config has, resolved by its threads when the config is taken.

    At the start a name that cannot be resolved is an error. A change of the config is answered before its names are
    resolved, as in Kafka: a name that cannot be resolved then keeps the addresses it had, if any; it is an error in the
    log, and of :meth:`settled`. ``on_change`` is called when :attr:`addresses` has changed.
    """

    def __init__(self, node_id: int, threads: BackgroundThreads, on_change: Callable[[], object]) -> None:
        self._node_id = node_id
        self._threads = threads
        self._on_change = on_change
        self.addresses: Mapping[str, tuple[str, ...]] = {}
        """By host name, all its addresses."""
        self._resolved = self._wanted = ""
        self._failed: dict[str, ConfigException] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self, overrides: str, essential: Collection[str]) -> None:
        """Resolves all names. Raises :class:`ConfigException` if one of the ``essential`` ones cannot be."""
        self._resolved = self._wanted = overrides
        await self._resolve(overrides)
        for name, error in self._failed.items():
            if name in essential:
                raise error
            self._log(error)

    def follow(self, overrides: str) -> None:
        """The config is this from now on."""
        self._wanted = overrides
        if self._task is None and overrides != self._resolved:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"hosts-of-node-{self._node_id}")

    async def settled(self) -> None:
        """Returns when all names are resolved. Raises :class:`ConfigException` for one that cannot be."""
        while self._task is not None:
            await asyncio.wait([self._task])
        for error in self._failed.values():
            raise error

    async def close(self) -> None:
        """Resolves nothing any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        try:
            while self._resolved != self._wanted:
                overrides = self._wanted
                await self._resolve(overrides)
                self._resolved = overrides
                self._on_change()
                for error in self._failed.values():
                    self._log(error)
        finally:
            self._task = None

    async def _resolve(self, overrides: str) -> None:
        names = host_names(overrides)
        answers = await asyncio.gather(
            *(self._threads.run(partial(_addresses_of, name)) for name in names), return_exceptions=True
        )
        known, self._failed = self.addresses, {}
        addresses = {name: known[name] for name in names if name in known}
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, tuple):
                addresses[name] = answer
            elif isinstance(answer, OSError | UnicodeError):
                reason = (answer.strerror if isinstance(answer, OSError) else None) or str(answer)
                message = f"config {_CONFIG!r}: the host name {name!r} cannot be resolved: {reason}"
                self._failed[name] = ConfigException(message, name=_CONFIG, value=name)
            else:
                raise answer
        self.addresses = addresses

    def _log(self, error: ConfigException) -> None:
        log.error("node %d: %s", self._node_id, error)


def _addresses_of(name: str) -> tuple[str, ...]:
    found = getaddrinfo(name, None, type=SOCK_STREAM)
    return tuple(dict.fromkeys(str(ip_address(address[0])) for *_, address in found))
