"""The life of a client that makes one request at a time, as its users see it: the admin client and the reader."""

from __future__ import annotations

from types import TracebackType
from typing import Generic, Self, TypeVar

from aioproducer.errors import IllegalStateException
from aioproducer.net.addresses import parse_addresses
from aioproducer.net.retrying_client import RetryingClient, RetryingConfig

C = TypeVar("C", bound=RetryingConfig)


class ClientLifecycle(Generic[C]):
    """Started and closed by its user, or by ``async with``; it belongs to the event loop it was started in."""

    def __init__(self, config: C, name: str) -> None:
        parse_addresses(config.bootstrap_servers)
        self._config = config
        self._name = name
        """For messages."""
        self._retrying: RetryingClient | None = None

    async def start(self) -> None:
        """Binds to the running loop and looks for the cluster. Starting twice is harmless."""
        if self._retrying is None:
            self._retrying = RetryingClient(self._config)

    async def close(self) -> None:
        """Ends all tasks and connections; calls that still wait for an answer raise IllegalStateException."""
        if self._retrying is not None:
            await self._retrying.close()
            self._retrying = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _client(self) -> RetryingClient:
        """The client that sends requests; IllegalStateException before the start and after the end."""
        if self._retrying is None:
            raise IllegalStateException(f"the {self._name} is not started: use 'async with' or 'await start()'")
        return self._retrying
