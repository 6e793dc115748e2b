"""GetTelemetrySubscriptions: the metrics of a client that its cluster wants (KIP-714)."""

from __future__ import annotations

from uuid import UUID

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.schema import (
    INT8,
    STRING,
    Request,
    Response,
    array,
    bool_,
    int16,
    int32,
    message,
    uuid,
)


@message(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest(Request):
    client_instance_id: UUID = uuid("0+")


@message(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse(Response):
    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_instance_id: UUID = uuid("0+")
    subscription_id: int = int32("0+")
    accepted_compression_types: list[int] = array(INT8, "0+")
    push_interval_ms: int = int32("0+")
    telemetry_max_bytes: int = int32("0+")
    delta_temporality: bool = bool_("0+")
    requested_metrics: list[str] = array(STRING, "0+")
