"""Faults of the embedded broker, so that clients can be tested against them.

:class:`Faults` decides. Handlers ask it about partitions and topics;
:class:`~aioproducer.broker.faulty_apis.FaultyApis` asks it about whole requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.state.topic import Partition, Topic
from aioproducer.error_code import ErrorCode
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
        """Its body. Raises ``SchemaException`` for one that cannot be read."""
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
    """Its connection is dropped instead of handling it."""
    handled_after: float = 0.0
    """It stays in the request queue for this long. It is handled even if its client has gone by then, as in Kafka, but
    not if the node was stopped."""
    unanswered: bool = False
    """It is handled, and its connection is dropped instead of a response."""
    answered_after: float = 0.0
    """Its response waits this long."""
    silent: bool = False
    """It is handled and never answered; its connection stays open."""
    cut_after: int | None = None
    """It is handled; only this many bytes of the response are sent, then its connection is dropped."""
    garbage: bytes | None = None
    """It is handled, and these bytes are sent instead of the response."""
    code: ErrorCode = ErrorCode.NONE
    """It is answered with this and not handled; for APIs whose response has an ``error_code``."""
    response: Response | None = None
    """It is answered with this and not handled."""
    edit: Callable[[Any], object] | None = None
    """It is handled, and this is called with the response before the response is sent."""


class AppendFault(NamedTuple):
    """An append that ends with an error; ``appended``: the records are in the log all the same."""

    code: ErrorCode
    appended: bool


class Faults:
    """Nothing goes wrong by default. Override what should; one instance may serve all nodes of a cluster."""

    def refuses_connection(self, node_id: int) -> bool:
        """Somebody has connected to the node; the connection may be dropped at once."""
        return False

    def on_request(self, request: ReceivedRequest) -> RequestFault | None:
        """A request has come."""
        return None

    def on_append(
        self, node_id: int, partition: Partition, batch: RecordBatch, client_id: str | None
    ) -> AppendFault | None:
        """A batch is about to be appended to a partition that the node leads."""
        return None

    def leaves_out(self, node_id: int) -> bool:
        """A partition is about to be answered for; the response may leave it out."""
        return False

    def throttle_ms(self, node_id: int) -> int:
        """For how long the producer is asked to pause."""
        return 0

    def on_topic_metadata(self, node_id: int, topic: str) -> ErrorCode:
        """What a topic that exists is answered with."""
        return ErrorCode.NONE

    def coordinator_error(self, node_id: int, key: str) -> ErrorCode:
        """What the coordinator of this group or transactional id answers instead of doing its work."""
        return ErrorCode.NONE

    def partitions(self, node_id: int, topic: Topic) -> int:
        """How many partitions of the topic the node's metadata knows by now."""
        return len(topic.partitions)

    def leader(self, node_id: int, partition: Partition) -> tuple[int, int]:
        """The leader and its epoch, as far as the node's metadata knows them by now."""
        return partition.leader, partition.leader_epoch


NO_FAULTS = Faults()
