"""AlterClientQuotas: sets and removes quotas of users, client ids and addresses (KIP-546, KIP-612)."""

from __future__ import annotations

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.messages.describe_client_quotas import EntityData
from aioproducer.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    float64,
    int16,
    int32,
    message,
    string,
    struct,
)


@struct
class OpData(Struct):
    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = bool_("0+")


@struct
class EntryData(Struct):
    entity: list[EntityData] = array(EntityData, "0+")
    ops: list[OpData] = array(OpData, "0+")


@message(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasRequest(Request):
    entries: list[EntryData] = array(EntryData, "0+")
    validate_only: bool = bool_("0+")


@struct
class EntryResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entity: list[EntityData] = array(EntityData, "0+")


@message(ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+")
class AlterClientQuotasResponse(Response):
    throttle_time_ms: int = int32("0+")
    entries: list[EntryResult] = array(EntryResult, "0+")
