"""Fetch: read record batches, and wait for them if there are none yet.

Versions 4 to 18.

Simplifications: whole batches only, where Kafka may cut the last one. No fetches by followers, nor from them: replicas
share their log, so there is no preferred read replica. A log may have been cut when its broker started: a client that
names the epoch of its last record (version 12) learns where they part.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.handlers.fetch_sessions import FetchContext, Wanted, WantedTopic
from aioproducer.broker.handlers.leader_epoch import check_leader_epoch, diverging_epoch
from aioproducer.broker.log.partition_log import PartitionLog
from aioproducer.broker.purgatory.delayed_fetch import DelayedFetch
from aioproducer.broker.requests.long_work import Steps, finish
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.cluster_nodes import Node
from aioproducer.broker.state.topic import Partition, Topic
from aioproducer.errors import (
    ApiException,
    AuthorizationException,
    NotLeaderOrFollowerException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
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

_PARTITIONS_AT_ONCE = 32
"""Partitions that are read before other requests get a turn."""


def handle(
    context: BrokerContext, request: Request, message: FetchRequest
) -> FetchResponse | Steps[FetchResponse] | Steps[None] | None:
    version, now_ms = request.header.api_version, int(context.clock.monotonic() * 1000)
    session = context.fetch_sessions.begin(message, version, request.connection.id, now_ms)
    if isinstance(session, ErrorCode):
        return FetchResponse(error_code=session)
    fetch = _Fetch(context, request, message, session)
    if message.max_wait_ms <= 0:
        return fetch.read() if fetch.is_wide else finish(fetch.read())
    operation = DelayedFetch(request, message.max_wait_ms, fetch)
    if fetch.is_wide:
        return fetch.wait(operation)
    context.purgatories.fetch.wait_for(fetch.partitions(), operation)
    return None


class _Fetch:
    """One request, which may wait until there is enough."""

    def __init__(self, context: BrokerContext, request: Request, message: FetchRequest, session: FetchContext) -> None:
        self._context = context
        self._request = request
        self._session = session
        self._version = request.header.api_version
        self._listener = request.connection.listener
        self._committed = message.isolation_level == READ_COMMITTED
        self._max_bytes = min(message.max_bytes, context.config.fetch_max_bytes, context.quotas.most_to_fetch(request))
        self._min_bytes = min(message.min_bytes, self._max_bytes)
        self._topics = session.topics()
        self._access = Access.of(context, request)
        # While it waits: what it wants of each partition, how far its bytes are counted, and the bytes of all.
        self._wanted: dict[Hashable, tuple[WantedTopic, Wanted]] = {}
        self._counted: dict[Hashable, tuple[int, int]] = {}
        self._size = 0
        # Of a wide one.
        self._operation: DelayedFetch | None = None
        self._places = 0

    def _named(self) -> Iterator[tuple[WantedTopic, Wanted, Partition | None]]:
        for wanted in self._topics:
            topic = self._topic(wanted)
            for one in wanted.partitions:
                yield wanted, one, None if topic is None else topic.partition(one.partition)

    def partitions(self) -> list[Partition]:
        """The existing partitions that the request names."""
        found = []
        for topic, wanted, partition in self._named():
            if partition is not None:
                self._wanted[partition] = topic, wanted
                found.append(partition)
        return found

    @property
    def _count(self) -> int:
        return sum(len(wanted.partitions) for wanted in self._topics)

    @property
    def is_wide(self) -> bool:
        """Whether to read it may take long."""
        return len(self._topics) > 1 or any(len(topic.partitions) >= _PARTITIONS_AT_ONCE for topic in self._topics)

    # waiting

    def is_enough(self) -> bool:
        """Kafka answers at once if enough can be read, if the request names no partition, and on any error."""
        if len(self._wanted) < self._count or not self._wanted:
            return True
        return any(map(self.is_enough_after, self._wanted)) or self._size >= self._min_bytes

    def is_enough_after(self, partition: Hashable) -> bool:
        topic, wanted = self._wanted[partition]
        counted_to, size = self._counted.get(partition, (wanted.fetch_offset, 0))
        try:
            checked = self._checked(topic, self._topic(topic), wanted)
            if diverging_epoch(checked, wanted.fetch_offset, wanted.last_fetched_epoch) is not None:
                return True
            log = checked.log
            more, end = log.readable(wanted.fetch_offset, counted_to, committed=self._committed)
        except ApiException:
            return True
        if more:
            limit = wanted.partition_max_bytes
            self._counted[partition] = end, size + more
            self._size += min(size + more, limit) - min(size, limit)
        return self._size >= self._min_bytes

    def wait(self, operation: DelayedFetch) -> Steps[None]:
        """Waits for many partitions. Each is watched before it is looked at, so nothing is missed between the slices.

        If all such fetches have too many of them together, it is answered at once.
        """
        purgatory, count = self._context.purgatories.fetch, self._count
        if not 0 < count <= purgatory.places:
            operation.force_complete()
            return
        purgatory.places -= count
        self._operation, self._places = operation, count
        if not purgatory.start(operation):
            return
        for number, (topic, wanted, partition) in enumerate(self._named()):
            if number % _PARTITIONS_AT_ONCE == _PARTITIONS_AT_ONCE - 1:
                yield
            if operation.is_completed:
                return
            if partition is None:
                operation.force_complete()
                return
            self._wanted[partition] = topic, wanted
            purgatory.watch_partition(partition, operation)
            if operation.try_complete_after(partition):
                return

    def gone(self) -> None:
        operation, self._operation = self._operation, None
        if operation is not None:
            self._context.long_work.run(self._request, self._unwatch(operation), needed=True)

    def _unwatch(self, operation: DelayedFetch) -> Steps[None]:
        purgatory = self._context.purgatories.fetch
        for number, partition in enumerate(self._wanted):
            if number % _PARTITIONS_AT_ONCE == _PARTITIONS_AT_ONCE - 1:
                yield
            purgatory.unwatch(operation, partition)
        purgatory.places += self._places

    def answer(self) -> None:
        if self.is_wide:
            self.gone()
            self._context.long_work.run(self._request, self.read())
        else:
            self._request.respond(finish(self.read()))

    # reading

    def read(self) -> Steps[FetchResponse]:
        leaders: dict[int, Node] = {}
        response = FetchResponse()
        memory = self._context.response_memory
        most = min(self._max_bytes, memory.share)
        size = count = 0
        for wanted in self._topics:
            topic = self._topic(wanted)
            partitions: list[PartitionData] = []
            for one in wanted.partitions:
                if count % _PARTITIONS_AT_ONCE == _PARTITIONS_AT_ONCE - 1:
                    yield
                data, read = self._read_partition(wanted, topic, one, most - size, size == 0, leaders)
                size += read
                count += 1
                if self._session.includes(wanted, one, data):
                    partitions.append(data)
            if partitions:
                response.responses.append(FetchableTopicResponse(wanted.topic, wanted.topic_id, partitions))
        memory.take(self._request, size)
        response.node_endpoints = [NodeEndpoint(node.id, node.host, node.port, node.rack) for node in leaders.values()]
        response = self._session.finish(response, int(self._context.clock.monotonic() * 1000))
        self._request.when_throttled(partial(self._session.throttled, response))
        return response

    def _topic(self, wanted: WantedTopic) -> Topic | None:
        state = self._context.state
        return state.topic_by_id(wanted.topic_id) if self._by_id else state.topics.get(wanted.topic)

    @property
    def _by_id(self) -> bool:
        return self._version >= _TOPIC_ID_VERSION

    def _checked(self, wanted_topic: WantedTopic, topic: Topic | None, wanted: Wanted) -> Partition:
        """The partition that is wanted. Raises what keeps it from being read here."""
        if topic is None and self._by_id:
            raise UnknownTopicIdException(f"there is no topic with id {wanted_topic.topic_id}")
        self._access.check(AclOperation.READ, ResourceType.TOPIC, wanted_topic.topic if topic is None else topic.name)
        partition = None if topic is None else topic.partition(wanted.partition)
        if partition is None:
            raise UnknownTopicOrPartitionException(f"there is no partition {wanted_topic.topic}-{wanted.partition}")
        if partition.leader != self._context.node_id:
            raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
        check_leader_epoch(partition, wanted.current_leader_epoch)
        return partition

    def _read_partition(
        self,
        wanted_topic: WantedTopic,
        topic: Topic | None,
        wanted: Wanted,
        max_bytes: int,
        min_one_batch: bool,
        leaders: dict[int, Node],
    ) -> tuple[PartitionData, int]:
        try:
            checked = self._checked(wanted_topic, topic, wanted)
            log = checked.log
            diverging = diverging_epoch(checked, wanted.fetch_offset, wanted.last_fetched_epoch)
            if diverging is not None:
                return _diverged(wanted, log, EpochEndOffset(*diverging)), 0
            # Kafka reads nothing, not even one batch, from the partitions after the first that gave something.
            limit = min(max_bytes, wanted.partition_max_bytes)
            batches = log.read(wanted.fetch_offset, limit, min_one_batch=min_one_batch, committed=self._committed)
        except ApiException as error:
            # Kafka answers an empty list where it does not get as far as the log.
            early = isinstance(
                error, (UnknownTopicOrPartitionException, UnknownTopicIdException, AuthorizationException)
            )
            data = PartitionData(
                wanted.partition,
                error.code,
                high_watermark=-1,
                aborted_transactions=[] if early else None,
                records=b"",
            )
            partition = None if topic is None else topic.partition(wanted.partition)
            if partition is not None and self._version >= _NODE_ENDPOINTS_VERSION:
                self._add_current_leader(data, partition, leaders)
            return data, 0
        data = PartitionData(
            wanted.partition,
            ErrorCode.NONE,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=_aborted(log, wanted.fetch_offset, batches) if self._committed else None,
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


def _diverged(wanted: Wanted, log: PartitionLog, diverging: EpochEndOffset) -> PartitionData:
    return PartitionData(
        wanted.partition,
        ErrorCode.NONE,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging,
        aborted_transactions=None,
        records=b"",
    )


def _aborted(log: PartitionLog, start: int, batches: Sequence[Buffer]) -> list[AbortedTransaction]:
    """The aborted transactions among what is read, by where they begin."""
    end = RecordBatch(batches[-1]).last_offset + 1 if batches else start
    found = log.aborted_transactions(start, end)
    return [AbortedTransaction(one.producer_id, one.first_offset) for one in found]
