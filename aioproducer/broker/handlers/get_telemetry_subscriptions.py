"""GetTelemetrySubscriptions: which of its metrics a client is to push (KIP-714).

Version 0. Simplification: the patterns of subscriptions are a subset of RE2's, and not Java's.
"""

from __future__ import annotations

from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from aioproducer.protocol.schema import Versions

VERSIONS = Versions(0, 0)


def handle(
    context: BrokerContext, request: Request, message: GetTelemetrySubscriptionsRequest
) -> Steps[GetTelemetrySubscriptionsResponse]:
    now = context.clock.monotonic()
    return context.client_metrics.subscription(message, request.connection, request.header.client_id, now)
