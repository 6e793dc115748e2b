"""Wakes tasks that wait for a change of the cluster."""

from __future__ import annotations

import asyncio

from aioproducer.errors import AuthenticationException


class ClusterChanges:
    """Wakes all waiters whenever a link changes or metadata arrives; each looks up what that means for it.

    A refusal (a broker does not accept the client, or the client the broker) is raised in the waiters for that node and
    in those for any node, as for metadata. Kafka's clients do the same.
    """

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._refusals: dict[int, AuthenticationException] = {}
        """The last refusal of each node."""

    def announce(self) -> None:
        self._changed.set()
        self._changed.clear()  # waiters wake all the same

    def announce_refusal(self, node_id: int, error: AuthenticationException) -> None:
        self._refusals[node_id] = error
        self.announce()

    async def next(self, node_id: int | None = None) -> None:
        """Returns at the next change; raises :class:`AuthenticationException` for a refusal by this node, or by any
        node if none is named."""
        before = dict(self._refusals)
        await self._changed.wait()
        for refusing, error in self._refusals.items():
            if node_id in (None, refusing) and error is not before.get(refusing):
                raise error.fresh()
