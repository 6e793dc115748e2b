"""PushTelemetry: metrics of a client, which are kept (KIP-714).

Version 0. In the place of Kafka's plugins, ``EmbeddedCluster.telemetry`` has them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.long_work import Steps
from aioproducer.broker.requests.request import Request
from aioproducer.broker.telemetry.received_telemetry import ClientPush
from aioproducer.errors import KafkaError
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from aioproducer.protocol.schema import Versions
from aioproducer.records.compression import CompressionType, decompress

VERSIONS = Versions(0, 0)

_AT_ONCE = 16 * 1024
"""Bytes that are decompressed at once. More of them go to a thread."""


def handle(
    context: BrokerContext, request: Request, message: PushTelemetryRequest
) -> Steps[PushTelemetryResponse | None]:
    client_id, now = request.header.client_id, context.clock.monotonic()
    code = yield from context.client_metrics.check_push(message, request.connection, client_id, now)
    if code is not ErrorCode.NONE or not message.metrics:
        return PushTelemetryResponse(error_code=code)
    codec, data = CompressionType(message.compression_type), bytes(message.metrics)
    most = context.config.telemetry_max_bytes
    work = partial(decompress, codec, data, most)
    if codec is CompressionType.NONE or len(data) <= _AT_ONCE:
        return _ended(context, request, message, work)

    def decompressed(future: asyncio.Future[bytes]) -> None:
        if not future.cancelled():  # else the node has stopped
            request.call_back(lambda: request.respond(_ended(context, request, message, future.result)))

    context.threads.run(work).add_done_callback(decompressed)
    return None


def _ended(
    context: BrokerContext, request: Request, message: PushTelemetryRequest, decompressed: Callable[[], bytes]
) -> PushTelemetryResponse:
    try:
        data = decompressed()
    except KafkaError:
        context.client_metrics.metrics_refused(request.connection)
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_RECORD)
    return _keep(context, request, message, data)


def _keep(
    context: BrokerContext, request: Request, message: PushTelemetryRequest, data: bytes
) -> PushTelemetryResponse:
    connection, software = request.connection, request.connection.software
    push = ClientPush(
        context.node_id,
        context.clock.time_ms(),
        message.client_instance_id,
        request.header.client_id or "",
        "" if software is None else f"{software.name} {software.version}",
        connection.user,
        connection.address,
        message.terminating,
        str(CompressionType(message.compression_type)),
        data,
    )
    context.telemetry.add(push, context.clock.monotonic())
    return PushTelemetryResponse()
