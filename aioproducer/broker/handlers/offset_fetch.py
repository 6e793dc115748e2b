"""OffsetFetch: the offsets that groups have committed.

Versions 1 to 10. With ``require_stable``, a partition with a pending offset of an open transaction is answered with
``UNSTABLE_OFFSET_COMMIT`` (KIP-447). A group, topic or partition that is named twice is answered once; Kafka answers
it twice.
"""

from __future__ import annotations

from collections.abc import Set
from uuid import UUID

from aioproducer.acls import AclOperation, ResourceType
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.checks import check_coordinator
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.errors import ApiException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 10)

_GROUPS_VERSION = 8
_TOPIC_ID_VERSION = 10
_NO_OFFSET = -1


_PARTITIONS_AT_ONCE = 100


def handle(context: BrokerContext, request: Request, message: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    version = request.header.api_version
    access = Access.of(context, request)
    if version >= _GROUPS_VERSION:
        groups = []
        for group in {group.group_id: group for group in message.groups}.values():
            groups.append((yield from _fetch(context, access, group, version, message.require_stable)))
            yield
        return OffsetFetchResponse(groups=groups)
    wanted = None
    if message.topics is not None:
        wanted = [OffsetFetchRequestTopics(topic.name, ZERO_UUID, topic.partition_indexes) for topic in message.topics]
    of_group = OffsetFetchRequestGroup(message.group_id, topics=wanted)
    only = yield from _fetch(context, access, of_group, version, message.require_stable)
    topics = [
        OffsetFetchResponseTopic(
            topic.name,
            [
                OffsetFetchResponsePartition(
                    one.partition_index, one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code
                )
                for one in topic.partitions
            ],
        )
        for topic in only.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=only.error_code)


def _fetch(
    context: BrokerContext, access: Access, group: OffsetFetchRequestGroup, version: int, require_stable: bool
) -> Steps[OffsetFetchResponseGroup]:
    try:
        access.check(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id)
        check_coordinator(context, group.group_id)
    except ApiException as error:
        return OffsetFetchResponseGroup(group.group_id, [], error.code)
    by_id = version >= _TOPIC_ID_VERSION
    if group.topics is None:
        wanted = yield from _all_topics(context, access, group.group_id)
    else:
        wanted = list({(topic.name, topic.topic_id): topic for topic in group.topics}.values())
    unstable = context.transactions.offsets.unstable(group.group_id) if require_stable else frozenset()
    topics = []
    for topic in wanted:
        yield
        name, topic_id = _named(context, topic, by_id)
        code = ErrorCode.NONE
        if name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not access.may_topic(AclOperation.DESCRIBE, name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        answers = []
        for index in dict.fromkeys(topic.partition_indexes):
            if name is None or code:
                answers.append(OffsetFetchResponsePartitions(index, _NO_OFFSET, -1, "", code))
            else:
                answers.append(_partition(context, group.group_id, (name, index), unstable))
            if len(answers) % _PARTITIONS_AT_ONCE == 0:
                yield
        topics.append(OffsetFetchResponseTopics(name or "", topic_id, answers))
    return OffsetFetchResponseGroup(group.group_id, topics)


def _all_topics(context: BrokerContext, access: Access, group: str) -> Steps[list[OffsetFetchRequestTopics]]:
    indexes: dict[str, list[int]] = {}
    for count, (name, index) in enumerate(tuple(context.transactions.offsets.committed(group)), start=1):
        if access.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name, asked_for=False):
            indexes.setdefault(name, []).append(index)
        if count % _PARTITIONS_AT_ONCE == 0:
            yield
    topics = context.state.topics
    return [OffsetFetchRequestTopics(name, topics[name].id, of) for name, of in indexes.items() if name in topics]


def _named(context: BrokerContext, wanted: OffsetFetchRequestTopics, by_id: bool) -> tuple[str | None, UUID]:
    if not by_id:
        return wanted.name, ZERO_UUID
    topic = context.state.topic_by_id(wanted.topic_id)
    return None if topic is None else topic.name, wanted.topic_id


def _partition(
    context: BrokerContext, group: str, partition: tuple[str, int], unstable: Set[tuple[str, int]]
) -> OffsetFetchResponsePartitions:
    if partition in unstable:
        return OffsetFetchResponsePartitions(partition[1], _NO_OFFSET, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT)
    found = context.transactions.offsets.committed(group).get(partition)
    if found is None:
        return OffsetFetchResponsePartitions(partition[1], _NO_OFFSET, -1, "", ErrorCode.NONE)
    return OffsetFetchResponsePartitions(partition[1], found.offset, found.leader_epoch, found.metadata, ErrorCode.NONE)
