"""ListGroups: the groups that a node coordinates."""

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


@message(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsRequest(Request):
    states_filter: list[str] = array(STRING, "4+")
    types_filter: list[str] = array(STRING, "5+")


@struct
class ListedGroup(Struct):
    group_id: str = string("0+")
    protocol_type: str = string("0+")
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


@message(ApiKey.LIST_GROUPS, versions="0-5", flexible="3+")
class ListGroupsResponse(Response):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    groups: list[ListedGroup] = array(ListedGroup, "0+")
