"""What each client is to push, and which of its requests are accepted (Kafka's ``ClientMetricsManager``).

Not in Kafka: an instance belongs to its connection, so that there are no more instances than connections, and no client
can take the instance of another. One that comes with another connection is a new one.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Generator, Mapping
from random import Random
from uuid import UUID
from weakref import WeakKeyDictionary

from aioproducer.broker.configs.client_match import ClientMatch
from aioproducer.broker.configs.resource_configs import Owner, ResourceConfigs
from aioproducer.broker.requests.request import Connection
from aioproducer.broker.telemetry.client_metrics_instance import ClientMetricsInstance
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from aioproducer.protocol.messages.push_telemetry import PushTelemetryRequest
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.records.compression import CompressionType, is_installed

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000

RESERVED = frozenset({ZERO_UUID, UUID(int=1)})
"""No client has these ids (Kafka's ``Uuid.RESERVED``)."""

_PREFERRED = (CompressionType.ZSTD, CompressionType.LZ4, CompressionType.GZIP, CompressionType.SNAPPY)
_AT_ONCE = 16
_REPEATABLE = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})


class ClientMetricsManager:
    """The client instances of one node. ``now`` is in seconds."""

    def __init__(self, configs: ResourceConfigs, random: Random, max_bytes: int) -> None:
        self._configs = configs
        self._random = random
        self._max_bytes = max_bytes
        self._instances: WeakKeyDictionary[Connection, ClientMetricsInstance] = WeakKeyDictionary()
        self._subscriptions: list[tuple[ClientMatch, frozenset[str], int]] = []
        self._version = -1
        self._accepted = [codec for codec in _PREFERRED if is_installed(codec)]

    def subscription(
        self, message: GetTelemetrySubscriptionsRequest, connection: Connection, client_id: str | None, now: float
    ) -> Generator[None, None, GetTelemetrySubscriptionsResponse]:
        """The answer to a client that asks for its subscription. Yields where other work may be done."""
        wanted = message.client_instance_id
        client_instance_id = self._new_id() if wanted == ZERO_UUID else wanted
        instance = yield from self._instance(client_instance_id, connection, client_id)
        if not instance.may_get(now) and instance.last_error not in _REPEATABLE:
            return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = ErrorCode.NONE
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=client_instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=list(map(int, self._accepted)),
            push_interval_ms=instance.push_interval_ms,
            telemetry_max_bytes=self._max_bytes,
            delta_temporality=True,
            requested_metrics=instance.metrics,
        )

    def check_push(
        self, message: PushTelemetryRequest, connection: Connection, client_id: str | None, now: float
    ) -> Generator[None, None, ErrorCode]:
        """What is wrong with a push, apart from its metrics. Yields where other work may be done."""
        if message.client_instance_id in RESERVED:
            return ErrorCode.INVALID_REQUEST
        instance = yield from self._instance(message.client_instance_id, connection, client_id)
        instance.last_error = self._error(instance, message, now)
        instance.is_terminating = message.terminating
        return instance.last_error

    def metrics_refused(self, connection: Connection) -> None:
        """The metrics that a client has pushed cannot be decompressed."""
        if (instance := self._instances.get(connection)) is not None:
            instance.last_error = ErrorCode.INVALID_RECORD

    def _error(self, instance: ClientMetricsInstance, message: PushTelemetryRequest, now: float) -> ErrorCode:
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(now) and not message.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if message.subscription_id != instance.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if message.compression_type not in (CompressionType.NONE, *self._accepted):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(message.metrics) > self._max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _instance(
        self, client_instance_id: UUID, connection: Connection, client_id: str | None
    ) -> Generator[None, None, ClientMetricsInstance]:
        """The client, whose subscription is made anew if any of them has changed."""
        known = self._instances.get(connection)
        if (
            known is not None
            and known.client_instance_id == client_instance_id
            and known.version == self._configs.version
        ):
            return known
        client = _description(client_instance_id, connection, client_id)
        version, metrics, interval_ms = self._configs.version, set[str](), DEFAULT_INTERVAL_MS
        for number, (match, prefixes, its_interval_ms) in enumerate(self._current()):
            if (yield from match.matches(client)):
                metrics |= prefixes
                interval_ms = min(interval_ms, its_interval_ms)
            if number % _AT_ONCE == _AT_ONCE - 1:
                yield
        wanted = [ALL_METRICS] if ALL_METRICS in metrics else sorted(metrics)
        instance = self._instances[connection] = ClientMetricsInstance(
            client_instance_id, _subscription_id(wanted, interval_ms, client_instance_id), version, wanted, interval_ms
        )
        return instance

    def _current(self) -> list[tuple[ClientMatch, frozenset[str], int]]:
        """All subscriptions: which clients, which metrics, and how often in milliseconds."""
        if self._version != self._configs.version:
            self._version = self._configs.version
            self._subscriptions = []
            for name in self._configs.names(Owner.CLIENT_METRICS):
                config = self._configs.subscription(name)
                self._subscriptions.append((ClientMatch(config.match), frozenset(config.metrics), config.interval_ms))
        return self._subscriptions

    def _new_id(self) -> UUID:
        while (found := UUID(int=self._random.getrandbits(128), version=4)) in RESERVED:
            pass
        return found


def _description(client_instance_id: UUID, connection: Connection, client_id: str | None) -> Mapping[str, str]:
    """What is known of a client, by selector."""
    _, _, remote = connection.id.partition("-")
    known = {
        "client_instance_id": base64.urlsafe_b64encode(client_instance_id.bytes).decode().rstrip("="),
        "client_source_address": connection.address,
        "client_source_port": remote.rpartition("-")[0].rpartition(":")[2],
    }
    if client_id is not None:
        known["client_id"] = client_id
    if connection.software is not None:
        known["client_software_name"], known["client_software_version"] = connection.software
    return known


def _subscription_id(metrics: list[str], interval_ms: int, client_instance_id: UUID) -> int:
    """The same on all nodes for the same subscription of the same client."""
    number = zlib.crc32(f"{metrics}{interval_ms}".encode()) ^ zlib.crc32(client_instance_id.bytes)
    return number - (1 << 32) if number >= 1 << 31 else number
