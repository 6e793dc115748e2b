"""DescribeProducers: the idempotent producers that a partition remembers (KIP-664).

Version 0. Only the leader answers. A partition that is named twice is described once; Kafka describes it twice.
Simplification: a producer whose last transaction has ended has no timestamp if the
marker began a new epoch.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.topic import validate_topic_name
from aioproducer.errors import ApiException, NotLeaderOrFollowerException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 0)

_PRODUCERS_AT_ONCE = 100


def handle(
    context: BrokerContext, request: Request, message: DescribeProducersRequest
) -> Steps[DescribeProducersResponse]:
    access = Access.of(context, request)
    wanted: dict[str, dict[int, None]] = {}
    for topic in message.topics:
        wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    response = DescribeProducersResponse()
    for name, indexes in wanted.items():
        described = TopicResponse(name)
        for index in indexes:
            described.partitions.append((yield from _describe(context, access, name, index)))
            yield
        response.topics.append(described)
    return response


def _describe(context: BrokerContext, access: Access, topic: str, index: int) -> Steps[PartitionResponse]:
    try:
        validate_topic_name(topic)
        access.check(AclOperation.READ, ResourceType.TOPIC, topic)
        partition = context.state.partition(topic, index)
        if partition.leader != context.node_id:
            raise NotLeaderOrFollowerException(f"the leader of {partition} is node {partition.leader}")
    except ApiException as error:
        return PartitionResponse(index, error.code, str(error))
    response = PartitionResponse(index, ErrorCode.NONE)
    for one in partition.log.each_active_producer():
        response.active_producers.append(ProducerState(*one))
        if len(response.active_producers) % _PRODUCERS_AT_ONCE == 0:
            yield
    return response
