"""DeleteTopics: delete topics by name, or from version 6 on by id.

Versions 1 to 6.

Simplification: done at once, by whichever node is asked.
"""

from __future__ import annotations

from aioproducer.broker.client_quota_manager import ControllerMutationQuota
from aioproducer.broker.context import BrokerContext
from aioproducer.broker.request import Request
from aioproducer.error_code import ErrorCode
from aioproducer.errors import ApiException, InvalidRequestException, TopicDeletionDisabledException
from aioproducer.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(1, 6)

_TOPIC_ID_VERSION = 6
_STRICT_VERSION = 5
"""From here on clients know THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle(context: BrokerContext, request: Request, message: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if request.header.api_version >= _TOPIC_ID_VERSION:
        wanted = message.topics
    else:
        wanted = [DeleteTopicState(name) for name in message.topic_names]
    mutations = context.quotas.mutations(request, strict_from=_STRICT_VERSION)
    responses = [_delete(context, topic, mutations) for topic in wanted]
    return DeleteTopicsResponse(throttle_time_ms=mutations.throttle_ms, responses=responses)


def _delete(
    context: BrokerContext, wanted: DeleteTopicState, mutations: ControllerMutationQuota
) -> DeletableTopicResult:
    name, topic_id = wanted.name, wanted.topic_id
    try:
        if not context.config.delete_topic_enable:
            raise TopicDeletionDisabledException("delete.topic.enable is false")
        if (name is None) == (topic_id == ZERO_UUID):
            raise InvalidRequestException("a topic to delete must have either a name or an id")
        known = context.state.topics.get(name) if name is not None else context.state.topic_by_id(topic_id)
        if known is not None:
            mutations.record(len(known.partitions))
        topic = context.state.delete_topic(name) if name is not None else context.state.delete_topic_by_id(topic_id)
        return DeletableTopicResult(topic.name, topic.id, ErrorCode.NONE)
    except ApiException as error:
        return DeletableTopicResult(name, topic_id, error.code, str(error))
