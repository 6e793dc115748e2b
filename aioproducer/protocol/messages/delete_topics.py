"""DeleteTopics: by name, since version 6 also by id."""

from __future__ import annotations

from uuid import UUID

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import (
    STRING,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    message,
    string,
    struct,
    uuid,
)


@struct
class DeleteTopicState(Struct):
    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: UUID = uuid("6+")


@message(ApiKey.DELETE_TOPICS, versions="1-6", flexible="4+")
class DeleteTopicsRequest(Request):
    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(STRING, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


@struct
class DeletableTopicResult(Struct):
    name: str | None = string("0+", nullable="6+")
    topic_id: UUID = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


@message(ApiKey.DELETE_TOPICS, versions="1-6", flexible="4+")
class DeleteTopicsResponse(Response):
    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult, "0+")
