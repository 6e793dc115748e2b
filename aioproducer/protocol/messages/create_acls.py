"""CreateAcls: allow and deny (KIP-140, KIP-290)."""

from __future__ import annotations

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import Request, Response, Struct, array, int8, int16, int32, message, string, struct


@struct
class AclCreation(Struct):
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


@message(ApiKey.CREATE_ACLS, versions="1-3", flexible="2+")
class CreateAclsRequest(Request):
    creations: list[AclCreation] = array(AclCreation, "0+")


@struct
class AclCreationResult(Struct):
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


@message(ApiKey.CREATE_ACLS, versions="1-3", flexible="2+")
class CreateAclsResponse(Response):
    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array(AclCreationResult, "0+")
