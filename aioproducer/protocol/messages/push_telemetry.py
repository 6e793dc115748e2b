"""PushTelemetry: metrics of a client for its cluster (KIP-714)."""

from __future__ import annotations

from uuid import UUID

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import Request, Response, bool_, bytes_, int8, int16, int32, message, uuid


@message(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryRequest(Request):
    client_instance_id: UUID = uuid("0+")
    subscription_id: int = int32("0+")
    terminating: bool = bool_("0+")
    compression_type: int = int8("0+")
    metrics: bytes = bytes_("0+")


@message(ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+")
class PushTelemetryResponse(Response):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
