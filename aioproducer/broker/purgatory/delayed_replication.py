"""A request that waits until the replicas have copied its changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from aioproducer.broker.purgatory.delayed_operation import DelayedOperation
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.topic import Partition
from aioproducer.errors import ApiException, NotLeaderOrFollowerException, error_for
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.schema import Response


class Replicating(Protocol):
    """A change to one partition, and its answer."""

    @property
    def partition(self) -> Partition: ...

    def is_replicated(self) -> bool:
        """Whether all required replicas have it."""

    def fail(self, error: ApiException) -> None:
        """Answers with an error instead; the change is not undone."""


class DelayedReplication(DelayedOperation):
    """Answers a request when its changes are replicated or at its time-out, unless its client has disconnected.

    Kafka's ``DelayedProduce`` (acks=all) and ``DelayedDeleteRecords``.
    """

    def __init__(
        self, request: Request, timeout_ms: int, node_id: int, response: Response, waiting: Iterable[Replicating]
    ) -> None:
        super().__init__(timeout_ms)
        self._request = request
        self._node_id = node_id
        self._response = response
        self._waiting = list(waiting)
        request.on_abandon(self.abandon)

    @property
    def partitions(self) -> list[Partition]:
        """The partitions that it waits for."""
        return [one.partition for one in self._waiting]

    def try_complete(self) -> bool:
        self._waiting = [one for one in self._waiting if not self._is_decided(one)]
        return not self._waiting and self.force_complete()

    def _is_decided(self, one: Replicating) -> bool:
        if one.partition.leader == self._node_id:
            return one.is_replicated()
        one.fail(NotLeaderOrFollowerException(f"the leader of {one.partition} is node {one.partition.leader} by now"))
        return True

    def on_complete(self) -> None:
        for one in self._waiting:
            text = f"the replicas in sync have not copied from {one.partition} what they should in {self.delay_ms} ms"
            one.fail(error_for(ErrorCode.REQUEST_TIMED_OUT, text))
        self._request.respond(self._response)
