"""ListOffsets: an offset by timestamp, or where a partition begins or ends.

Versions 1 to 11.

Simplification: no tiered storage: the earliest local offset is the earliest one, and there is none that was tiered or
waits to be.
"""

from __future__ import annotations

from collections import Counter

from aioproducer.broker.context import BrokerContext
from aioproducer.broker.leader_epoch import check_leader_epoch
from aioproducer.broker.partition_log import NO_TIMESTAMP, TimestampAndOffset
from aioproducer.broker.request import Request
from aioproducer.broker.topic import Partition
from aioproducer.error_code import ErrorCode
from aioproducer.errors import (
    ApiException,
    InvalidRequestException,
    NotLeaderOrFollowerException,
    UnsupportedVersionException,
)
from aioproducer.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 11)

_LATEST = -1
_EARLIEST = -2
_MAX_TIMESTAMP = -3
_EARLIEST_LOCAL = -4
_LATEST_TIERED = -5
_EARLIEST_PENDING_UPLOAD = -6

_FIRST_VERSION = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_LEADER_EPOCH_VERSION = 4
READ_COMMITTED = 1
_NOTHING = TimestampAndOffset(NO_TIMESTAMP, -1, -1)


def handle(context: BrokerContext, request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse:
    version = request.header.api_version
    committed = message.isolation_level == READ_COMMITTED
    times = Counter(
        (topic.name, partition.partition_index) for topic in message.topics for partition in topic.partitions
    )
    topics = []
    for topic in message.topics:
        partitions = []
        for wanted in topic.partitions:
            try:
                if times[topic.name, wanted.partition_index] > 1:
                    raise InvalidRequestException(f"{topic.name}-{wanted.partition_index} is there twice")
                partitions.append(_list_offset(context, topic.name, wanted, version, committed))
            except ApiException as error:
                partitions.append(ListOffsetsPartitionResponse(wanted.partition_index, error.code))
        topics.append(ListOffsetsTopicResponse(topic.name, partitions))
    return ListOffsetsResponse(topics=topics)


def _list_offset(
    context: BrokerContext, topic: str, wanted: ListOffsetsPartition, version: int, committed: bool
) -> ListOffsetsPartitionResponse:
    if wanted.timestamp < 0 and version < _FIRST_VERSION.get(wanted.timestamp, version + 1):
        raise UnsupportedVersionException(f"timestamp {wanted.timestamp} has no meaning in version {version}")
    partition = context.state.partition(topic, wanted.partition_index)
    if partition.leader != context.node_id:
        raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
    check_leader_epoch(partition, wanted.current_leader_epoch)
    found = _find(partition, wanted.timestamp, committed)
    return ListOffsetsPartitionResponse(
        wanted.partition_index,
        ErrorCode.NONE,
        found.timestamp,
        found.offset,
        found.leader_epoch if version >= _LEADER_EPOCH_VERSION else -1,
    )


def _find(partition: Partition, timestamp: int, committed: bool) -> TimestampAndOffset:
    log = partition.log
    end = log.last_stable_offset if committed else log.high_watermark
    if timestamp == _LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, end, partition.leader_epoch)
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        empty = log.log_start_offset == log.log_end_offset
        epoch = partition.leader_epoch if empty else log.leader_epoch_at(log.log_start_offset)
        return TimestampAndOffset(NO_TIMESTAMP, log.log_start_offset, epoch)
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return _NOTHING
    found = log.find_max_timestamp() if timestamp == _MAX_TIMESTAMP else log.find_by_timestamp(timestamp)
    return found if found is not None and found.offset < end else _NOTHING
