"""What the benchmarks want of a producer.

A client is made, used and closed within one event loop of a process of its own. How a record is sent, awaited and
checked is its own affair, in the way its users would do it, so that nothing stands between the clock and the client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import ClassVar

LINGER_MS = 5
"""The same for all; whatever else is not said in a client's file is that client's default."""


class Client(ABC):
    """A producer with acks=all, idempotent if it can be, LINGER_MS, no compression."""

    name: ClassVar[str]
    idempotent: ClassVar[bool] = True

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    @classmethod
    @abstractmethod
    def about(cls) -> str:
        """Its version, and what else decides its speed: how it was built, what it runs on."""

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...


class StreamingClient(Client):
    """A client that takes records as fast as they come and tells of each what became of it."""

    @abstractmethod
    async def stream(self, topic: str, value: bytes, records: int) -> Counter[str]:
        """Sends ``records`` times ``value``, waits until each has ended, and looks at every single outcome.

        Returns the failures by their kind.
        """


class AwaitingClient(Client):
    """A client whose records can be awaited one by one."""

    @abstractmethod
    def awaitable_send(self) -> Callable[[str, bytes], Awaitable[object]]:
        """The client's own call: ``await call(topic, value)`` returns when the record is acknowledged, or raises."""
