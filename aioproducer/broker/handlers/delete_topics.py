"""DeleteTopics: delete topics by name, or from version 6 on by id.

Versions 1 to 6.

Simplification: any node does it.
"""

from __future__ import annotations

from uuid import UUID

from aioproducer.acls import AclOperation
from aioproducer.broker.handlers.access import Access
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.quotas.client_quota_manager import ControllerMutationQuota
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.state.topic import Topic
from aioproducer.errors import ApiException, InvalidRequestException, TopicDeletionDisabledException
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 6)

_PARTITIONS_AT_ONCE = 100
_TOPIC_ID_VERSION = 6
_STRICT_VERSION = 5
"""From here on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle(context: BrokerContext, request: Request, message: DeleteTopicsRequest) -> Steps[DeleteTopicsResponse]:
    if request.header.api_version >= _TOPIC_ID_VERSION:
        wanted = message.topics
    else:
        wanted = [DeleteTopicState(name) for name in message.topic_names]
    access = Access.of(context, request)
    mutations = context.quotas.mutations(request, strict_from=_STRICT_VERSION)
    by_id: dict[object, list[DeleteTopicState]] = {}
    for topic in wanted:
        by_id.setdefault(_id_of(context, topic), []).append(topic)
    responses = []
    for same in by_id.values():
        if len(same) == 1:
            responses.append((yield from _delete(context, access, same[0], mutations)))
        else:
            responses.append(_refused(same))
        yield
    return DeleteTopicsResponse(throttle_time_ms=mutations.throttle_ms, responses=responses)


def _id_of(context: BrokerContext, wanted: DeleteTopicState) -> object:
    """What it is deleted by: the id of a topic that exists, whichever way it is named."""
    if wanted.name is None:
        return wanted.topic_id
    known = context.state.topics.get(wanted.name)
    return wanted.name if known is None or wanted.topic_id != ZERO_UUID else known.id


def _refused(same: list[DeleteTopicState]) -> DeletableTopicResult:
    """A topic that is there several times."""
    name = next((topic.name for topic in same if topic.name is not None), None)
    topic_id = next((topic.topic_id for topic in same if topic.topic_id != ZERO_UUID), ZERO_UUID)
    return DeletableTopicResult(
        name, topic_id, ErrorCode.INVALID_REQUEST, "each topic may be there once, by name or id"
    )


def _delete(
    context: BrokerContext, access: Access, wanted: DeleteTopicState, mutations: ControllerMutationQuota
) -> Steps[DeletableTopicResult]:
    name, topic_id = wanted.name, wanted.topic_id
    try:
        if not context.config.delete_topic_enable:
            raise TopicDeletionDisabledException("delete.topic.enable is false")
        if (name is None) == (topic_id == ZERO_UUID):
            raise InvalidRequestException("a topic to delete must have either a name or an id")
        known = context.state.topics.get(name) if name is not None else context.state.topic_by_id(topic_id)
        refused = _unauthorized(access, known, name, topic_id)
        if refused is not None:
            return refused
        if known is not None:
            mutations.record(len(known.partitions))
            # Few are left for the deletion itself, which must remove all at once.
            yield from context.groups.offsets.forgetting(known.name)
        state = context.state
        topic = yield from (state.deleting_topic(name) if name is not None else state.deleting_topic_by_id(topic_id))
        while topic.partitions:  # to free thousands of them at once would take long
            del topic.partitions[-_PARTITIONS_AT_ONCE:]
            yield
        return DeletableTopicResult(topic.name, topic.id, ErrorCode.NONE)
    except ApiException as error:
        return DeletableTopicResult(name, topic_id, error.code, str(error))


def _unauthorized(access: Access, known: Topic | None, name: str | None, topic_id: UUID) -> DeletableTopicResult | None:
    """The result for a client that may not delete a topic. It has no name if the client may not describe the topic."""
    wanted = name if known is None else known.name
    if wanted is None or access.may_cluster(AclOperation.DELETE, asked_for=False):
        return None
    sees = access.may_topic(AclOperation.DESCRIBE, wanted)
    if sees and (known is None or access.may_topic(AclOperation.DELETE, wanted)):
        return None
    shown = wanted if sees and name is None else name
    return DeletableTopicResult(shown, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not authorized")
