"""Produce: append record batches.

Versions 3 to 14 (0 to 2 are offered for librdkafka's sake, see ``api_versions``, and refused). 14 is KIP-1269's: every
answer for a partition that the node leads says how many batches of a producer are remembered there.

With acks=all it is answered when the replicas in sync have copied the batches, at once unless some are held
(``EmbeddedCluster.hold_replica``); ``NOT_ENOUGH_REPLICAS`` if there are fewer of them than ``min.insync.replicas``.
While there are, nothing counts as copied, as since Kafka 3.7: who waited by then gets ``REQUEST_TIMED_OUT``, and
``NOT_ENOUGH_REPLICAS_AFTER_APPEND`` is left to faults.

Simplification: every error has a message (version 8 and later), Kafka gives one for invalid records only.

A batch of a transaction must be for a partition that was added to it; since version 12 it is added here (KIP-890).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from uuid import UUID

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.configs.topic_config import TopicConfig
from aioproducer.broker.handlers.access import UNLIMITED, Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.log.log_validator import Scan, Wanted, batch_of_request, scan, wanted_of
from aioproducer.broker.log.producer_state import NUM_BATCHES_TO_RETAIN
from aioproducer.broker.purgatory.delayed_replication import DelayedReplication
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.cluster_nodes import Node
from aioproducer.broker.state.topic import Partition, Topic
from aioproducer.errors import (
    ApiException,
    AuthorizationException,
    InvalidProducerEpochException,
    InvalidRequiredAcksException,
    InvalidTxnStateException,
    NotEnoughReplicasException,
    NotLeaderOrFollowerException,
    ProducerFencedException,
    TransactionAbortableException,
    TransactionalIdAuthorizationException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
    error_for,
)
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from aioproducer.protocol.schema import Records, Versions
from aioproducer.records.batch_layout import ATTRIBUTES_OFFSET, CODEC_MASK, TRANSACTIONAL
from aioproducer.records.compression import CompressionType, DecompressedTooLargeException, millisecond_of_work
from aioproducer.records.record_batch import RecordBatch

log = logging.getLogger(__name__)

VERSIONS = Versions(3, 14)
NEWEST_BEFORE_KIP_1269 = 13

_TOPIC_ID_VERSION = 13
_CURRENT_LEADER_VERSION = 10
_ABORTABLE_VERSION = 11
_IMPLICIT_PARTITIONS_VERSION = 12
_ACKS_NONE, _ACKS_ALL = 0, -1

_CODEC_AT = ATTRIBUTES_OFFSET + 1
_PARTITIONS_AT_ONCE = 32
_BYTES_AT_ONCE = 4 * 1024 * 1024
_PACKED_BYTES_AT_ONCE = 512 * 1024
_DECOMPRESSED_AT_ONCE = 1024 * 1024
"""What takes a millisecond or so. Requests with more to do are handled in a thread and in slices."""


_Scans = Mapping[int, Scan]
"""Batches that were scanned before they are appended, by the ``id`` of their partition's data in the request."""

_NO_SCANS: _Scans = {}


def handle(context: BrokerContext, request: Request, message: ProduceRequest) -> ProduceResponse | None:
    topics = _distinct(message.topic_data)
    version = request.header.api_version
    writer = _Writer.of(context, request, message)
    scans: _Scans | None = None
    if not (_is_wide(topics) or context.order.is_busy(request.connection)):
        scans = _scan_now(context, version, writer.writable(context, version, topics))
    if scans is not None:
        append = _Append(context, request, message, writer, scans)
        for data in topics:
            append.add(data, data.partition_data)
        return append.end()
    request.hold()
    steps = _scan_elsewhere(context, request, message, writer, topics)
    context.order.run(request, partial(context.long_work.run, request, steps, needed=True))
    return None


class _Writer(NamedTuple):
    """The client, as far as it may write."""

    access: Access
    transactional_id: str | None
    """None unless it writes batches of a transaction."""

    @staticmethod
    def of(context: BrokerContext, request: Request, message: ProduceRequest) -> _Writer:
        access = Access.of(context, request)
        transactional = access is not UNLIMITED and any(
            _is_transactional(wanted.records) for topic in message.topic_data for wanted in topic.partition_data
        )
        return _Writer(access, message.transactional_id or "" if transactional else None)

    def check(self, topic: str) -> None:
        """Raises :class:`AuthorizationException`."""
        if self.transactional_id is not None:
            self.access.check(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, self.transactional_id)
        self.access.check(AclOperation.WRITE, ResourceType.TOPIC, topic)

    def writable(
        self, context: BrokerContext, version: int, topics: Sequence[TopicProduceData]
    ) -> Sequence[TopicProduceData]:
        """Nothing else is worth being read."""
        if self.access is UNLIMITED:
            return topics
        found = []
        for data in topics:
            topic = _topic(context, version, data)
            with suppress(AuthorizationException):  # it is found again, and answered
                self.check(data.name if topic is None else topic.name)
                found.append(data)
        return found


def _is_wide(topics: Sequence[TopicProduceData]) -> bool:
    return max(len(topics), sum(len(data.partition_data) for data in topics)) > _PARTITIONS_AT_ONCE


def _is_transactional(records: Records) -> bool:
    """Whether the records are a batch of a transaction; they may be anything."""
    if not isinstance(records, (memoryview, bytes, bytearray)) or len(records) <= _CODEC_AT:
        return False
    return bool(records[_CODEC_AT] & TRANSACTIONAL)


def _scan_now(context: BrokerContext, version: int, topics: Sequence[TopicProduceData]) -> _Scans | None:
    """Decompresses what is compressed, and compresses what its topic wants in another codec; None if all that the
    request has to have done takes too long for the loop."""
    size = 0
    packed: list[tuple[PartitionProduceData, TopicConfig | None]] = []
    for data in topics:
        topic = _topic(context, version, data)
        config = None if topic is None else topic.config_on(context.node_id)
        kept_as_sent = config is None or config.codec is None
        for wanted in data.partition_data:
            records = wanted.records
            if isinstance(records, (memoryview, bytes, bytearray)) and len(records) > _CODEC_AT:
                size += len(records)
                if records[_CODEC_AT] & CODEC_MASK or not kept_as_sent:
                    packed.append((wanted, config))
    if size > (_PACKED_BYTES_AT_ONCE if packed else _BYTES_AT_ONCE):
        return None
    if not packed:
        return _NO_SCANS
    scans: dict[int, Scan] = {}
    left = _DECOMPRESSED_AT_ONCE
    for wanted, config in packed:
        try:
            batch = batch_of_request(wanted.records, version)
            wish = None if config is None else wanted_of(batch, config, context.clock.time_ms())
            codec = None if wish is None else wish.codec
            if codec is not None and codec.type is not CompressionType.NONE:
                left = min(left, millisecond_of_work(codec.type, codec.level))
                if batch.size_in_bytes > left:
                    return None
            found = scan(batch, left, wish)
        except DecompressedTooLargeException:
            return None
        except ApiException:
            continue  # it is found again, and answered
        scans[id(wanted)] = found
        left -= found.decompressed or (batch.size_in_bytes if codec else 0)
        if left < 0:
            return None
    return scans


def _scan_elsewhere(
    context: BrokerContext,
    request: Request,
    message: ProduceRequest,
    writer: _Writer,
    topics: Sequence[TopicProduceData],
) -> Steps[None]:
    """Reads the batches in a thread, and appends them after that in slices. Unless it fails, its place in the order is
    free when they are appended."""
    try:
        yield from _scan_in_thread(context, request, message, writer, topics)
    except Exception:
        request.release()
        context.order.ended(request)
        raise


def _scan_in_thread(
    context: BrokerContext,
    request: Request,
    message: ProduceRequest,
    writer: _Writer,
    topics: Sequence[TopicProduceData],
) -> Steps[None]:
    batches: dict[int, tuple[RecordBatch, Wanted | None]] = {}
    now_ms = context.clock.time_ms()
    version = request.header.api_version
    for data in topics:
        yield
        if not writer.writable(context, version, (data,)):
            continue
        topic = _topic(context, version, data)
        for number, wanted in enumerate(data.partition_data, start=1):
            if number % _PARTITIONS_AT_ONCE == 0:
                yield
            partition = None if topic is None else topic.partition(wanted.index)
            with suppress(ApiException):  # it is found again, and answered
                batch = batch_of_request(wanted.records, version)
                if partition is not None and batch.size_in_bytes <= partition.log.config.max_message_bytes:
                    batches[id(wanted)] = batch, wanted_of(batch, partition.log.config, now_ms)

    def append(found: asyncio.Future[list[Scan]]) -> None:
        steps = _append_in_order(context, request, message, writer, topics, found, batches)
        context.long_work.run(request, steps, needed=True)

    def scanned(found: asyncio.Future[list[Scan]]) -> None:
        if not found.cancelled():  # else the node has stopped
            request.call_back(partial(append, found))

    context.scanner.scan(list(batches.values()), scanned)


def _append_in_order(
    context: BrokerContext,
    request: Request,
    message: ProduceRequest,
    writer: _Writer,
    topics: Sequence[TopicProduceData],
    found: asyncio.Future[list[Scan]],
    batches: Iterable[int],
) -> Steps[ProduceResponse | None]:
    try:
        append = _Append(context, request, message, writer, dict(zip(batches, found.result(), strict=True)))
        for data in topics:
            for start in range(0, len(data.partition_data), _PARTITIONS_AT_ONCE):
                append.add(data, data.partition_data[start : start + _PARTITIONS_AT_ONCE])
                yield
        return append.end()
    finally:
        request.release()
        context.order.ended(request)


@dataclass(frozen=True, slots=True)
class _Replicating:
    """A batch that followers have still to copy."""

    partition: Partition
    last_offset: int
    answer: PartitionProduceResponse

    def is_replicated(self) -> bool:
        return self.partition.log.high_watermark > self.last_offset

    def fail(self, error: ApiException) -> None:
        self.answer.error_code, self.answer.error_message = error.code, str(error)


class _Append:
    """The work of one request."""

    def __init__(
        self, context: BrokerContext, request: Request, message: ProduceRequest, writer: _Writer, scans: _Scans
    ) -> None:
        self._context = context
        self._request = request
        self._writer = writer
        self._scans = scans
        self._timeout_ms = message.timeout_ms
        self._responses: list[TopicProduceResponse] = []
        self._data: TopicProduceData | None = None
        self._version = request.header.api_version
        self._listener = request.connection.listener
        self._acks = message.acks
        self._transactional_id = message.transactional_id
        self._client_id = request.header.client_id
        self._now_ms = context.clock.time_ms()
        self._now = context.clock.monotonic()
        self._leaders: dict[int, Node] = {}
        self._appended_to: list[Partition] = []
        self._replicating: list[_Replicating] = []
        self._failures: list[str] = []

    def add(self, data: TopicProduceData, wanted: Sequence[PartitionProduceData]) -> None:
        """Appends to some of the partitions of a topic."""
        faults, node_id = self._context.faults, self._context.node_id
        topic = _topic(self._context, self._version, data)
        answers = [self._answer_partition(data, topic, one) for one in wanted]
        if topic is not None:
            rates = self._context.topic_metrics.of(topic.name)
            for answer in answers:
                rates.produced(answer.error_code != ErrorCode.NONE, self._now)
        kept = [answer for answer in answers if not faults.leaves_out(node_id)]
        if self._responses and self._data is data:
            self._responses[-1].partition_responses += kept
        else:
            self._data = data
            self._responses.append(TopicProduceResponse(data.name, data.topic_id, kept))
        # Completes the fetches that wait for these records.
        for partition in self._appended_to:
            partition.notify()
        self._appended_to.clear()

    def end(self) -> ProduceResponse | None:
        """Responds, at once or when all is replicated."""
        request, faults, node_id = self._request, self._context.faults, self._context.node_id
        endpoints = [NodeEndpoint(node.id, node.host, node.port, node.rack) for node in self._leaders.values()]
        response = ProduceResponse(self._responses, faults.throttle_ms(node_id), endpoints)
        if self._replicating:
            waiting = DelayedReplication(request, self._timeout_ms, node_id, response, self._replicating)
            self._context.purgatories.produce.wait_for(waiting.partitions, waiting)
            return None
        if self._acks != _ACKS_NONE:
            return response
        if self._failures:
            # There is no response; closing the connection at least makes the producer refresh its metadata.
            log.info("produce with acks=0 failed: %s", "; ".join(self._failures))
            request.close_connection("a produce request with acks=0 failed")
        else:
            request.no_response()
        return None

    def _answer_partition(
        self, data: TopicProduceData, topic: Topic | None, wanted: PartitionProduceData
    ) -> PartitionProduceResponse:
        partition = None if topic is None else topic.partition(wanted.index)
        try:
            if topic is None and self._version >= _TOPIC_ID_VERSION:
                raise UnknownTopicIdException(f"there is no topic with id {data.topic_id}")
            self._writer.check(data.name if topic is None else topic.name)
            if topic is None or partition is None:
                raise UnknownTopicOrPartitionException(f"there is no partition {data.name}-{wanted.index}")
            return self._append(partition, wanted)
        except ApiException as error:
            self._failures.append(f"{data.name or data.topic_id}-{wanted.index}: {error.code.name}: {error}")
            answer = PartitionProduceResponse(wanted.index, error.code, -1, error_message=str(error))
            answer.record_errors = [BatchIndexAndErrorMessage(*one) for one in error.refused_records.items()]
            if partition is not None and error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                answer.current_leader = self._current_leader(partition)
            known = not isinstance(error, AuthorizationException)
            if known and partition is not None and partition.leader == self._context.node_id:
                answer.producer_state_batches_to_retain = self._reported(partition)
            return answer

    def _append(self, partition: Partition, wanted: PartitionProduceData) -> PartitionProduceResponse:
        batch = batch_of_request(wanted.records, self._version)
        if self._acks not in (_ACKS_NONE, 1, _ACKS_ALL):
            raise InvalidRequiredAcksException(f"acks must be 0, 1 or -1 (all), not {self._acks}")
        if partition.leader != self._context.node_id:
            raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
        if batch.is_transactional:
            self._join_transaction(partition, batch)
        if self._acks == _ACKS_ALL:
            self._check_in_sync_replicas(partition)
        fault = self._context.faults.on_append(self._context.node_id, partition, batch, self._client_id)
        if fault is not None and not fault.appended:
            raise error_for(fault.code, f"a fault: {partition} takes no batch")
        info = partition.log.append(
            batch,
            leader_epoch=partition.leader_epoch,
            now_ms=self._now_ms,
            remembered=self._remembered(partition),
            scanned=self._scans.get(id(wanted)),
        )
        if not info.duplicate:
            self._appended_to.append(partition)
            rates = self._context.topic_metrics.of(partition.topic)
            rates.appended(info.last_offset - info.first_offset + 1, batch.size_in_bytes, self._now)
        if fault is not None:
            raise error_for(fault.code, f"a fault: the batch is in {partition} all the same")
        answer = PartitionProduceResponse(
            wanted.index,
            ErrorCode.NONE,
            info.first_offset,
            log_append_time_ms=info.log_append_time,
            log_start_offset=partition.log.log_start_offset,
            producer_state_batches_to_retain=self._reported(partition),
        )
        if self._acks == _ACKS_ALL and info.last_offset >= partition.log.high_watermark:
            self._replicating.append(_Replicating(partition, info.last_offset, answer))
        return answer

    def _remembered(self, partition: Partition) -> int:
        return NUM_BATCHES_TO_RETAIN if self._context.old else partition.log.config.producer_state_batches_to_retain

    def _reported(self, partition: Partition) -> int:
        return self._remembered(partition) if self._version > NEWEST_BEFORE_KIP_1269 else NUM_BATCHES_TO_RETAIN

    def _join_transaction(self, partition: Partition, batch: RecordBatch) -> None:
        transactional_id = self._transactional_id
        if transactional_id is None:
            raise TransactionalIdAuthorizationException("a batch of a transaction came without a transactional id")
        identity = batch.producer_id, batch.producer_epoch
        where = partition.topic, partition.index
        try:
            if self._version >= _IMPLICIT_PARTITIONS_VERSION:
                self._context.transactions.add_partitions(transactional_id, identity, [where])
            else:
                self._context.transactions.check_partition(transactional_id, identity, where)
        except ProducerFencedException as error:
            raise InvalidProducerEpochException(str(error)) from error  # the name it has in this API
        except InvalidTxnStateException as error:
            if self._version < _ABORTABLE_VERSION:
                raise
            raise TransactionAbortableException(str(error)) from error

    def _check_in_sync_replicas(self, partition: Partition) -> None:
        in_sync = len(self._context.state.in_sync_replicas(partition))
        needed = partition.min_in_sync_replicas
        if in_sync < needed:
            raise NotEnoughReplicasException(f"{partition} has {in_sync} replicas in sync, and needs {needed}")

    def _current_leader(self, partition: Partition) -> LeaderIdAndEpoch:
        if self._version < _CURRENT_LEADER_VERSION:
            return LeaderIdAndEpoch()
        node = self._context.state.nodes.find(partition.leader, self._listener)
        if node is not None:
            self._leaders[node.id] = node
        return LeaderIdAndEpoch(partition.leader, partition.leader_epoch)


def _topic(context: BrokerContext, version: int, data: TopicProduceData) -> Topic | None:
    state = context.state
    return state.topic_by_id(data.topic_id) if version >= _TOPIC_ID_VERSION else state.topics.get(data.name)


def _distinct(topics: Sequence[TopicProduceData]) -> Sequence[TopicProduceData]:
    """Each partition once: the last batch that is named for it is appended and the others are not, as in Kafka."""
    if len(topics) == 1 and len(topics[0].partition_data) == 1:
        return topics
    merged: dict[tuple[str, UUID], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        wanted = merged.setdefault((topic.name, topic.topic_id), {})
        wanted.update((one.index, one) for one in topic.partition_data)
    return [TopicProduceData(name, topic_id, list(wanted.values())) for (name, topic_id), wanted in merged.items()]
