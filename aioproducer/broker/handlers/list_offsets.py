"""ListOffsets: an offset by timestamp, or where a partition begins or ends.

Versions 1 to 11.

The largest timestamp is that of a record that is left. Kafka, which looks at segments, may name a deleted record.
Simplification: no tiered storage: the earliest local offset is the earliest one, and there is none that was tiered or
waits to be.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.handlers.leader_epoch import check_leader_epoch
from aioproducer.broker.log.batch_scanner import BatchScanner
from aioproducer.broker.log.log_validator import NO_TIMESTAMP
from aioproducer.broker.log.timestamp_search import TimestampAndOffset, TimestampSearch
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.topic import Partition
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


class _Search(NamedTuple):
    """What has to be looked for in a batch that is compressed, and the answer that waits for it."""

    search: TimestampSearch
    end: int
    answer: ListOffsetsPartitionResponse

    def run(self, version: int) -> None:
        try:
            _tell(self.answer, self.search.run(), self.end, version)
        except ApiException as error:
            self.answer.error_code = error.code


def handle(context: BrokerContext, request: Request, message: ListOffsetsRequest) -> Steps[ListOffsetsResponse | None]:
    times = Counter(
        (topic.name, partition.partition_index) for topic in message.topics for partition in topic.partitions
    )
    version = request.header.api_version
    committed = message.isolation_level == READ_COMMITTED
    access = Access.of(context, request)
    response = ListOffsetsResponse()
    searches: list[_Search] = []
    for topic in message.topics:
        partitions = []
        for wanted in topic.partitions:
            answer = ListOffsetsPartitionResponse(wanted.partition_index)
            try:
                access.check(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
                if times[topic.name, wanted.partition_index] > 1:
                    raise InvalidRequestException(f"{topic.name}-{wanted.partition_index} is there twice")
                search = _list_offset(context, topic.name, wanted, answer, version, committed)
                searches += [] if search is None else [search]
            except ApiException as error:
                answer.error_code = error.code
            partitions.append(answer)
            yield
        response.topics.append(ListOffsetsTopicResponse(topic.name, partitions))
    if not searches:
        return response
    context.scanner.run(partial(_run, searches, version, context.scanner), partial(_respond, request, response))
    return None


def _run(searches: Sequence[_Search], version: int, scanner: BatchScanner) -> None:
    for search in searches:
        if scanner.is_closed:
            break
        search.run(version)


def _respond(request: Request, response: ListOffsetsResponse, ran: asyncio.Future[None]) -> None:
    def respond() -> None:
        ran.result()
        request.respond(response)

    if not ran.cancelled():  # else the node has stopped
        request.call_back(respond)


def _list_offset(
    context: BrokerContext,
    topic: str,
    wanted: ListOffsetsPartition,
    answer: ListOffsetsPartitionResponse,
    version: int,
    committed: bool,
) -> _Search | None:
    """Fills in the answer, or says what has to be done for that."""
    if wanted.timestamp < 0 and version < _FIRST_VERSION.get(wanted.timestamp, version + 1):
        raise UnsupportedVersionException(f"timestamp {wanted.timestamp} has no meaning in version {version}")
    partition = context.state.partition(topic, wanted.partition_index)
    if partition.leader != context.node_id:
        raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
    check_leader_epoch(partition, wanted.current_leader_epoch)
    log = partition.log
    end = log.last_stable_offset if committed else log.high_watermark
    search = None
    if wanted.timestamp == _MAX_TIMESTAMP:
        search = log.search_max_timestamp()
    elif wanted.timestamp >= 0:
        search = log.search_timestamp(wanted.timestamp)
    if search is not None and not search.is_quick:
        return _Search(search, end, answer)
    if search is not None:
        _tell(answer, search.run(), end, version)
    else:
        _tell(answer, _without_search(partition, wanted.timestamp, end), end + 1, version)
    return None


def _without_search(partition: Partition, timestamp: int, end: int) -> TimestampAndOffset | None:
    log = partition.log
    if timestamp == _LATEST:
        return TimestampAndOffset(NO_TIMESTAMP, end, partition.leader_epoch)
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        empty = log.log_start_offset == log.log_end_offset
        epoch = partition.leader_epoch if empty else log.leader_epoch_at(log.log_start_offset)
        return TimestampAndOffset(NO_TIMESTAMP, log.log_start_offset, epoch)
    return None


def _tell(answer: ListOffsetsPartitionResponse, found: TimestampAndOffset | None, end: int, version: int) -> None:
    if found is not None and found.offset < end:
        answer.timestamp, answer.offset = found.timestamp, found.offset
        answer.leader_epoch = found.leader_epoch if version >= _LEADER_EPOCH_VERSION else -1
