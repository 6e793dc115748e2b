"""Faults of the embedded broker, so that clients can be tested against them.

:class:`Faults` decides. Handlers call it for partitions and topics,
:class:`~aioproducer.broker.faulty_apis.FaultyApis` for whole requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.topic import Partition, Topic
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.codec import decode_prefix
from aioproducer.protocol.headers import RequestHeader
from aioproducer.protocol.schema import Request, Response
from aioproducer.records.record_batch import RecordBatch


class ReceivedRequest(NamedTuple):
    """A request that has arrived at a node and has not been handled yet."""

    node_id: int
    header: RequestHeader
    frame: bytes | memoryview
    body_at: int
    state: ClusterState

    def message(self) -> Request:
        """Decodes its body. Raises ``SchemaException`` for a malformed one."""
        request = APIS[ApiKey(self.header.api_key)].request
        return decode_prefix(request, self.header.api_version, self.frame, self.body_at)[0]

    def topic_name(self, topic_id: UUID) -> str | None:
        """The name of a topic, by its id."""
        topic = self.state.topic_by_id(topic_id)
        return None if topic is None else topic.name


@dataclass(frozen=True, slots=True)
class RequestFault:
    """What happens to one request. Times are in seconds."""

    lost: bool = False
    """The request is not handled, and its connection is dropped."""
    handled_after: float = 0.0
    """The request stays in the queue for this long. Then it is handled even if its client has disconnected, as in
    Kafka, but not if the node has stopped."""
    unanswered: bool = False
    """The request is handled, and its connection is dropped instead of a response."""
    answered_after: float = 0.0
    """The response is sent after this delay."""
    silent: bool = False
    """The request is handled and never answered; its connection stays open."""
    cut_after: int | None = None
    """The request is handled. This many bytes of the response are sent, then its connection is dropped."""
    garbage: bytes | None = None
    """The request is handled, and these bytes are sent instead of the response."""
    code: ErrorCode = ErrorCode.NONE
    """The request is not handled, but answered with this code; for APIs whose response has an ``error_code``."""
    response: Response | None = None
    """The request is not handled, but answered with this response."""
    edit: Callable[[Any], object] | None = None
    """The request is handled, and this function may change the response before it is sent."""


class AppendFault(NamedTuple):
    """An append that ends with an error; with ``appended`` the records are in the log nevertheless."""

    code: ErrorCode
    appended: bool


class Faults:
    """No faults by default: override the methods of those that you want. One instance may serve all nodes."""

    def refuses_connection(self, node_id: int) -> bool:
        """Whether the node drops a new connection at once."""
        return False

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        """The fault of a request that has arrived; None for none."""
        return None

    def on_append(
        self, node_id: int, partition: Partition, batch: RecordBatch, client_id: str | None
    ) -> AppendFault | None:
        """The fault of an append to a partition that the node leads; None for none."""
        return None

    def leaves_out(self, node_id: int) -> bool:
        """Whether a produce response leaves out a partition."""
        return False

    def throttle_ms(self, node_id: int) -> int:
        """The throttle time in a produce response."""
        return 0

    def on_topic_metadata(self, node_id: int, topic: str) -> ErrorCode:
        """The error code of an existing topic in a metadata response."""
        return ErrorCode.NONE

    def coordinator_error(self, node_id: int, key: str) -> ErrorCode:
        """The error that the coordinator of this group or transactional id answers instead of handling a request."""
        return ErrorCode.NONE

    def partitions(self, node_id: int, topic: Topic) -> int:
        """How many partitions of the topic the node's metadata has."""
        return len(topic.partitions)

    def leader(self, node_id: int, partition: Partition) -> tuple[int, int]:
        """The leader and its epoch in the node's metadata."""
        return partition.leader, partition.leader_epoch


NO_FAULTS = Faults()
