"""Fetch: read record batches, and wait for them if there are none yet.

Versions 4 to 18.

Simplifications: no fetch sessions: a request for one is answered with session id 0, as Kafka does when it has no room
for another, and the client goes on with full fetches. Whole batches only, where Kafka may cut the last one. No
fetches by followers, nor from them: replicas share their log, so there is no divergence and no preferred read
replica.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aioproducer.broker.cluster_nodes import Node
from aioproducer.broker.context import BrokerContext
from aioproducer.broker.delayed_fetch import DelayedFetch
from aioproducer.broker.leader_epoch import check_leader_epoch
from aioproducer.broker.partition_log import PartitionLog
from aioproducer.broker.request import Request
from aioproducer.broker.topic import Partition, Topic
from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    ApiException,
    NotLeaderOrFollowerException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
)
from aioproducer.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from aioproducer.protocol.primitives import Buffer
from aioproducer.protocol.schema import Versions
from aioproducer.records.record_batch import RecordBatch

VERSIONS = Versions(4, 18)

_TOPIC_ID_VERSION = 13
_NODE_ENDPOINTS_VERSION = 16
READ_COMMITTED = 1
_NEW_SESSION, _NO_SESSION = 0, -1


def handle(context: BrokerContext, request: Request, message: FetchRequest) -> FetchResponse | None:
    if message.session_epoch not in (_NEW_SESSION, _NO_SESSION):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    fetch = _Fetch(context, request, message)
    if message.max_wait_ms <= 0:
        return fetch.read().response

    def read() -> tuple[FetchResponse, bool]:
        now = fetch.read()
        return now.response, now.is_enough(message.min_bytes)

    context.purgatories.fetch.wait_for(fetch.partitions(), DelayedFetch(request, message.max_wait_ms, read))
    return None


class _Result(NamedTuple):
    response: FetchResponse
    size: int
    failed: bool

    def is_enough(self, min_bytes: int) -> bool:
        """Kafka answers at once when there is enough to read, when nothing is asked for, and when anything fails."""
        return self.size >= min_bytes or self.failed or not self.response.responses


class _Fetch:
    """One request, which may be read several times until there is enough."""

    def __init__(self, context: BrokerContext, request: Request, message: FetchRequest) -> None:
        self._context = context
        self._version = request.header.api_version
        self._listener = request.connection.listener
        self._most = context.quotas.most_to_fetch(request)
        self._message = message

    def partitions(self) -> list[Partition]:
        """Those the request names and that exist."""
        found = []
        for wanted in self._message.topics:
            topic = self._topic(wanted)
            if topic is not None:
                found += [topic.partition(partition.partition) for partition in wanted.partitions]
        return [partition for partition in found if partition is not None]

    def read(self) -> _Result:
        leaders: dict[int, Node] = {}
        response = FetchResponse()
        left = min(self._message.max_bytes, self._context.config.fetch_max_bytes, self._most)
        size = 0
        failed = False
        for wanted in self._message.topics:
            topic = self._topic(wanted)
            partitions = []
            for wanted_partition in wanted.partitions:
                data, read = self._read_partition(wanted, topic, wanted_partition, left - size, size == 0, leaders)
                size += read
                failed = failed or data.error_code != ErrorCode.NONE
                partitions.append(data)
            response.responses.append(FetchableTopicResponse(wanted.topic, wanted.topic_id, partitions))
        response.node_endpoints = [NodeEndpoint(node.id, node.host, node.port, node.rack) for node in leaders.values()]
        return _Result(response, size, failed)

    def _topic(self, wanted: FetchTopic) -> Topic | None:
        state = self._context.state
        return state.topic_by_id(wanted.topic_id) if self._by_id else state.topics.get(wanted.topic)

    @property
    def _by_id(self) -> bool:
        return self._version >= _TOPIC_ID_VERSION

    def _read_partition(
        self,
        wanted_topic: FetchTopic,
        topic: Topic | None,
        wanted: FetchPartition,
        max_bytes: int,
        min_one_batch: bool,
        leaders: dict[int, Node],
    ) -> tuple[PartitionData, int]:
        partition = None if topic is None else topic.partition(wanted.partition)
        try:
            if topic is None and self._by_id:
                raise UnknownTopicIdException(f"there is no topic with id {wanted_topic.topic_id}")
            if partition is None:
                raise UnknownTopicOrPartitionException(f"there is no partition {wanted_topic.topic}-{wanted.partition}")
            if partition.leader != self._context.node_id:
                raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
            check_leader_epoch(partition, wanted.current_leader_epoch)
            # Kafka reads nothing, not even one batch, from the partitions after the first that gave something.
            limit = min(max_bytes, wanted.partition_max_bytes)
            committed = self._message.isolation_level == READ_COMMITTED
            log = partition.log
            batches = log.read(wanted.fetch_offset, limit, min_one_batch=min_one_batch, committed=committed)
        except ApiException as error:
            data = PartitionData(
                wanted.partition, error.code, high_watermark=-1, aborted_transactions=None, records=b""
            )
            if partition is not None and self._version >= _NODE_ENDPOINTS_VERSION:
                self._add_current_leader(data, partition, leaders)
            return data, 0
        data = PartitionData(
            wanted.partition,
            ErrorCode.NONE,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=_aborted(log, wanted.fetch_offset, batches) if committed else None,
            records=tuple(batches) or b"",
        )
        return data, sum(map(len, batches))

    def _add_current_leader(self, data: PartitionData, partition: Partition, leaders: dict[int, Node]) -> None:
        if data.error_code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            return
        data.current_leader = LeaderIdAndEpoch(partition.leader, partition.leader_epoch)
        node = self._context.state.nodes.find(partition.leader, self._listener)
        if node is not None:
            leaders[node.id] = node


def _aborted(log: PartitionLog, start: int, batches: Sequence[Buffer]) -> list[AbortedTransaction]:
    """The aborted transactions among what is read, by where they begin."""
    end = RecordBatch(batches[-1]).last_offset + 1 if batches else start
    found = log.aborted_transactions(start, end)
    return [AbortedTransaction(one.producer_id, one.first_offset) for one in found]
