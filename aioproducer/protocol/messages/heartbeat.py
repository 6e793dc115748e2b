"""Heartbeat: a member of a group is still there."""

from __future__ import annotations

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import (
    Request,
    Response,
    int16,
    int32,
    message,
    string,
)


@message(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatRequest(Request):
    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


@message(ApiKey.HEARTBEAT, versions="0-4", flexible="4+")
class HeartbeatResponse(Response):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
