"""Wakes tasks that wait for a change of the cluster."""

from __future__ import annotations

import asyncio
import itertools
from typing import Final

from aioproducer.errors import AuthenticationException

AT_ONCE: Final = 50
"""Waiters that wake in one turn of the loop: each looks things up, and thousands may wait."""


class ClusterChanges:
    """Wakes all waiters whenever a link changes or metadata arrives; each looks up what that means for it.

    A refusal (a broker does not accept the client, or the client the broker) is raised in the waiters for that node and
    in those for any node, as for metadata. Kafka's clients do the same.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # Dictionaries, whose order is that of arrival, and which a cancelled waiter leaves at once.
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._waking: dict[asyncio.Future[None], None] = {}
        """Those that a change concerns, until their turn to wake."""
        self._refusals: dict[int, AuthenticationException] = {}
        """The last refusal of each node."""

    def announce(self) -> None:
        busy = len(self._waking) > 0
        self._waking |= self._waiting
        self._waiting.clear()
        if not busy:
            self._wake()

    def _wake(self) -> None:
        for waiter in list(itertools.islice(self._waking, AT_ONCE)):
            del self._waking[waiter]
            if not waiter.done():
                waiter.set_result(None)
        if self._waking:
            self._loop.call_soon(self._wake)

    def announce_refusal(self, node_id: int, error: AuthenticationException) -> None:
        self._refusals[node_id] = error
        self.announce()

    async def next(self, node_id: int | None = None) -> None:
        """Returns at the next change; raises :class:`AuthenticationException` for a refusal by this node, or by any
        node if none is named."""
        before = dict(self._refusals)
        waiter = self._loop.create_future()
        self._waiting[waiter] = None
        try:
            await waiter
        finally:
            self._waiting.pop(waiter, None)
            self._waking.pop(waiter, None)
        for refusing, error in self._refusals.items():
            if node_id in (None, refusing) and error is not before.get(refusing):
                raise error.fresh()
