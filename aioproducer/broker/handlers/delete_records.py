"""DeleteRecords: move the log start offsets of partitions.

Versions 0 to 2. Simplification: topics whose ``cleanup.policy`` has no ``delete`` are not refused, as that config has
no effect.
"""

from __future__ import annotations

from aioproducer.broker.context import BrokerContext
from aioproducer.broker.request import Request
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException, NotLeaderOrFollowerException
from aioproducer.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 2)

_ALL = -1
_NO_LOW_WATERMARK = -1


def handle(context: BrokerContext, request: Request, message: DeleteRecordsRequest) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(topic.name, [_delete(context, topic.name, one) for one in topic.partitions])
            for topic in message.topics
        ]
    )


def _delete(context: BrokerContext, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        partition = context.state.partition(topic, index)
        if partition.leader != context.node_id:
            raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
        log = partition.log
        log.delete_records(log.high_watermark if wanted.offset == _ALL else wanted.offset)
        return DeleteRecordsPartitionResult(index, log.log_start_offset, ErrorCode.NONE)
    except ApiException as error:
        return DeleteRecordsPartitionResult(index, _NO_LOW_WATERMARK, error.code)
