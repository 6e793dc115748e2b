"""OffsetForLeaderEpoch: where the records of a leader epoch end. By that consumers notice that a log was cut (KIP-320).

Versions 2 to 4.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.handlers.leader_epoch import check_leader_epoch
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException, NotLeaderOrFollowerException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(2, 4)

_PARTITIONS_AT_ONCE = 100


def handle(
    context: BrokerContext, request: Request, message: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse()
    access = Access.of(context, request)
    sees_all = access.may_cluster(AclOperation.CLUSTER_ACTION, asked_for=False)
    count = 0
    for topic in message.topics:
        answers: list[EpochEndOffset] = []
        response.topics.append(OffsetForLeaderTopicResult(topic.topic, answers))
        for wanted in topic.partitions:
            count += 1
            if count % _PARTITIONS_AT_ONCE == 0:
                yield
            if sees_all or access.may_topic(AclOperation.DESCRIBE, topic.topic):
                answers.append(_answer(context, topic.topic, wanted))
            else:
                answers.append(EpochEndOffset(ErrorCode.TOPIC_AUTHORIZATION_FAILED, wanted.partition, end_offset=-1))
    return response


def _answer(context: BrokerContext, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = context.state.partition(topic, wanted.partition)
        if partition.leader != context.node_id:
            raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
        check_leader_epoch(partition, wanted.current_leader_epoch)
    except ApiException as error:
        return EpochEndOffset(error.code, wanted.partition, end_offset=-1)
    return EpochEndOffset(ErrorCode.NONE, wanted.partition, *partition.end_offset_of(wanted.leader_epoch))
