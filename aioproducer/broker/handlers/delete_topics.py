"""DeleteTopics: delete topics by name, or from version 6 on by id.

Versions 1 to 6.

Simplification: done at once, by whichever node is asked.
"""

from __future__ import annotations

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


def handle(context: BrokerContext, request: Request, message: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if request.header.api_version >= _TOPIC_ID_VERSION:
        wanted = message.topics
    else:
        wanted = [DeleteTopicState(name) for name in message.topic_names]
    return DeleteTopicsResponse(responses=[_delete(context, topic) for topic in wanted])


def _delete(context: BrokerContext, wanted: DeleteTopicState) -> DeletableTopicResult:
    name, topic_id = wanted.name, wanted.topic_id
    try:
        if not context.config.delete_topic_enable:
            raise TopicDeletionDisabledException("delete.topic.enable is false")
        if (name is None) == (topic_id == ZERO_UUID):
            raise InvalidRequestException("a topic to delete must have either a name or an id")
        topic = context.state.delete_topic(name) if name is not None else context.state.delete_topic_by_id(topic_id)
        return DeletableTopicResult(topic.name, topic.id, ErrorCode.NONE)
    except ApiException as error:
        return DeletableTopicResult(name, topic_id, error.code, str(error))
