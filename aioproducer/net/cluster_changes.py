"""News of the cluster, for whoever cannot go on without."""

from __future__ import annotations

import asyncio

from aioproducer.errors import AuthenticationException


class News:
    """Wakes everybody who waits whenever a link has changed or metadata has come. What that means to them they look up.

    A refusal (a broker does not accept the client, or the client the broker) is raised to those who wait for that node,
    and to those who would take any, as for metadata. Kafka's clients do the same.
    """

    def __init__(self) -> None:
        self._told = asyncio.Event()
        self._refusals: dict[int, AuthenticationException] = {}
        """The last one of each node."""

    def tell(self) -> None:
        self._told.set()
        self._told.clear()  # they are woken all the same

    def tell_refusal(self, node_id: int, error: AuthenticationException) -> None:
        self._refusals[node_id] = error
        self.tell()

    async def next(self, node_id: int | None = None) -> None:
        """Returns when there is something new; raises :class:`AuthenticationException` if that is a refusal, by this
        node, or by any if none is named."""
        before = dict(self._refusals)
        await self._told.wait()
        for refusing, error in self._refusals.items():
            if node_id in (None, refusing) and error is not before.get(refusing):
                raise error.fresh()
