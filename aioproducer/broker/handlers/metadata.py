"""Metadata: the live nodes as the request's listener advertises them, the topics, and the leaders of their partitions.

Versions 0 to 13.

A topic that is created on request exists after the response, which says
``UNKNOWN_TOPIC_OR_PARTITION``, as in Kafka: the client retries. Simplifications: no topic is internal; for a topic
that cannot be created the answer says why, where Kafka answers ``UNKNOWN_TOPIC_OR_PARTITION`` every time.
"""

from __future__ import annotations

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.topic import NO_LEADER, NewTopic, Partition, Topic, validate_topic_name
from aioproducer.errors import ApiException, InvalidTopicException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 13)

_LISTENER_NOT_FOUND_VERSION = 6
_PARTITIONS_AT_ONCE = 32
_TOPIC_ID_VERSION = 12
"""Versions 10 and 11 have room for topic ids, and Kafka refuses them there."""


def handle(context: BrokerContext, request: Request, message: MetadataRequest) -> Steps[MetadataResponse]:
    state = context.state
    version = request.header.api_version
    listener = request.connection.listener
    access = Access.of(context, request)
    alive = state.nodes.alive(listener)
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node.id, node.host, node.port, node.rack) for node in alive],
        cluster_id=state.cluster_id,
        controller_id=state.nodes.controller_id,
    )
    if message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = access.cluster_operations()
    # In version 0 an empty list means all topics; from version 1 on null does.
    if message.topics is None or (version == 0 and not message.topics):
        for topic in tuple(state.topics.values()):
            if access.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name, asked_for=False):
                found = yield from _describe(context, topic, request)
                _add(response, found, access, message)
            yield
    else:
        # A topic that is named twice is answered once.
        wanted = {(topic.topic_id, topic.name): topic for topic in message.topics}
        for one in wanted.values():
            found = yield from _find(context, access, one, request, create=message.allow_auto_topic_creation)
            _add(response, found, access, message)
            yield
    return response


def _add(response: MetadataResponse, found: MetadataResponseTopic, access: Access, message: MetadataRequest) -> None:
    is_seen = found.name is not None and found.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if message.include_topic_authorized_operations and is_seen:
        found.topic_authorized_operations = access.operations(ResourceType.TOPIC, found.name or "")
    response.topics.append(found)


def _find(
    context: BrokerContext, access: Access, wanted: MetadataRequestTopic, request: Request, *, create: bool
) -> Steps[MetadataResponseTopic]:
    if request.header.api_version < _TOPIC_ID_VERSION and (wanted.topic_id != ZERO_UUID or wanted.name is None):
        return MetadataResponseTopic(ErrorCode.INVALID_REQUEST, wanted.name or "", wanted.topic_id)
    if wanted.topic_id != ZERO_UUID:
        known = context.state.topic_by_id(wanted.topic_id)
        if known is None:
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id)
        if not access.may_topic(AclOperation.DESCRIBE, known.name):
            return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, wanted.topic_id)
        return (yield from _describe(context, known, request))
    name = wanted.name
    if name is None:
        return MetadataResponseTopic(ErrorCode.INVALID_REQUEST, None)
    if not access.may_topic(AclOperation.DESCRIBE, name):
        return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    known = context.state.topics.get(name)
    if known is None:
        try:
            if not (create and context.config.auto_create_topics_enable):
                validate_topic_name(name)
                return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
            if not access.may_create(name):
                return MetadataResponseTopic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
            yield from context.state.creating_topic(NewTopic(name))
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        except InvalidTopicException:
            return MetadataResponseTopic(ErrorCode.INVALID_TOPIC_EXCEPTION, name)
        except ApiException as error:
            return MetadataResponseTopic(error.code, name)
    return (yield from _describe(context, known, request))


def _describe(context: BrokerContext, topic: Topic, request: Request) -> Steps[MetadataResponseTopic]:
    code = context.faults.on_topic_metadata(context.node_id, topic.name)
    if code is not ErrorCode.NONE:
        return MetadataResponseTopic(code, topic.name, topic.id)
    known = topic.partitions[: context.faults.partitions(context.node_id, topic)]
    partitions = []
    for partition in known:
        partitions.append(_describe_partition(context, partition, request))
        if len(partitions) % _PARTITIONS_AT_ONCE == 0:
            yield
    return MetadataResponseTopic(ErrorCode.NONE, topic.name, topic.id, partitions=partitions)


def _describe_partition(context: BrokerContext, partition: Partition, request: Request) -> MetadataResponsePartition:
    state = context.state
    in_sync = state.in_sync_replicas(partition)
    leader, leader_epoch = context.faults.leader(context.node_id, partition)
    code, listener = ErrorCode.NONE, request.connection.listener
    if leader == NO_LEADER:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    elif state.nodes.is_alive(leader) and state.nodes.find(leader, listener) is None:
        # Kafka names no leader that the client cannot reach.
        leader, code = NO_LEADER, ErrorCode.LEADER_NOT_AVAILABLE
        if request.header.api_version >= _LISTENER_NOT_FOUND_VERSION:
            code = ErrorCode.LISTENER_NOT_FOUND
    return MetadataResponsePartition(
        error_code=code,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=in_sync,
        offline_replicas=[replica for replica in partition.replicas if state.nodes.find(replica, listener) is None],
    )
