"""DeleteRecords: move the log start offsets of partitions.

Versions 0 to 2. It is answered when every replica on a live node has done so, at once unless some are held
(``EmbeddedCluster.hold_replica``).
"""

from __future__ import annotations

from dataclasses import dataclass

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.purgatory.delayed_replication import DelayedReplication
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.topic import Partition
from aioproducer.errors import ApiException, NotLeaderOrFollowerException, PolicyViolationException
from aioproducer.errors.error_code import ErrorCode
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


_PARTITIONS_AT_ONCE = 32


def handle(
    context: BrokerContext, request: Request, message: DeleteRecordsRequest
) -> Steps[DeleteRecordsResponse | None]:
    waiting: list[_Deletion] = []
    access = Access.of(context, request)
    response = DeleteRecordsResponse()
    for topic in message.topics:
        result = DeleteRecordsTopicResult(topic.name)
        for number, one in enumerate(topic.partitions, start=1):
            result.partitions.append(_delete(context, access, topic.name, one, waiting))
            if number % _PARTITIONS_AT_ONCE == 0:
                yield
        response.topics.append(result)
        yield
    behind: list[_Deletion] = []
    for number, deletion in enumerate(waiting, start=1):
        if not deletion.is_replicated():
            behind.append(deletion)
        if number % _PARTITIONS_AT_ONCE == 0:
            yield
    if not behind:
        return response
    delayed = DelayedReplication(request, message.timeout_ms, context.node_id, response, behind)
    context.purgatories.delete_records.wait_for(delayed.partitions, delayed)
    return None


@dataclass(frozen=True, slots=True)
class _Deletion:
    """Records that are deleted on the leader."""

    partition: Partition
    before_offset: int
    result: DeleteRecordsPartitionResult

    def is_replicated(self) -> bool:
        self.result.low_watermark = self.partition.low_watermark
        return self.result.low_watermark >= self.before_offset

    def fail(self, error: ApiException) -> None:
        self.result.low_watermark, self.result.error_code = _NO_LOW_WATERMARK, error.code


def _delete(
    context: BrokerContext, access: Access, topic: str, wanted: DeleteRecordsPartition, deletions: list[_Deletion]
) -> DeleteRecordsPartitionResult:
    index = wanted.partition_index
    try:
        access.check(AclOperation.DELETE, ResourceType.TOPIC, topic)
        partition = context.state.partition(topic, index)
        if partition.leader != context.node_id:
            raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
        log = partition.log
        if "delete" not in log.config.cleanup_policy:
            raise PolicyViolationException(f"records of {partition} are not deleted: its cleanup.policy has no delete")
        before_offset = log.high_watermark if wanted.offset == _ALL else wanted.offset
        log.delete_records(before_offset)
    except ApiException as error:
        return DeleteRecordsPartitionResult(index, _NO_LOW_WATERMARK, error.code)
    result = DeleteRecordsPartitionResult(index, log.log_start_offset, ErrorCode.NONE)
    deletions.append(_Deletion(partition, before_offset, result))
    return result
