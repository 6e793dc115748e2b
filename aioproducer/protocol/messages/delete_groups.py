"""DeleteGroups: deletes groups without members."""

from __future__ import annotations

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
)


@message(ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+")
class DeleteGroupsRequest(Request):
    groups_names: list[str] = array(STRING, "0+")


@struct
class DeletableGroupResult(Struct):
    group_id: str = string("0+")
    error_code: int = int16("0+")


@message(ApiKey.DELETE_GROUPS, versions="0-2", flexible="2+")
class DeleteGroupsResponse(Response):
    throttle_time_ms: int = int32("0+")
    results: list[DeletableGroupResult] = array(DeletableGroupResult, "0+")
