"""What a cluster wants of a client's metrics (Kafka's ``ClientTelemetrySubscription``)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from aioproducer.errors import KafkaError
from aioproducer.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from aioproducer.protocol.primitives import ZERO_UUID
from aioproducer.records.compression import CompressionType, is_installed

DEFAULT_INTERVAL: Final = 300.0
"""Seconds between requests while no broker has named an interval."""

_ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Subscription:
    """A broker's answer to GetTelemetrySubscriptions. Times are in seconds."""

    client_instance_id: UUID
    subscription_id: int
    push_interval: float
    codecs: tuple[CompressionType, ...]
    """Those that the broker accepts, the one it prefers first; ``none`` is always accepted."""
    delta_temporality: bool
    """Whether a push has what has been counted since the last one, or all."""
    max_bytes: int
    """Of a payload, compressed or not: brokers decompress no more (Kafka's ``telemetry.max.bytes``)."""
    prefixes: tuple[str, ...]
    """Of the names of the metrics wanted; none if it wants no metrics."""

    @classmethod
    def of(cls, answer: GetTelemetrySubscriptionsResponse) -> Self:
        """Raises :class:`KafkaError` for an answer that makes no sense."""
        if answer.client_instance_id == ZERO_UUID:
            raise KafkaError("the broker has assigned no client instance id")
        wanted = tuple(answer.requested_metrics)
        return cls(
            answer.client_instance_id,
            answer.subscription_id,
            answer.push_interval_ms / 1000 if answer.push_interval_ms > 0 else DEFAULT_INTERVAL,
            tuple(CompressionType(number) for number in answer.accepted_compression_types if number in _CODECS),
            answer.delta_temporality,
            answer.telemetry_max_bytes,
            ("",) if wanted == (_ALL,) else wanted,
        )

    @property
    def is_empty(self) -> bool:
        """Whether it wants no metrics."""
        return not self.prefixes

    def wants(self, name: str) -> bool:
        """Whether it wants the metric with this name."""
        return name.startswith(self.prefixes)

    def codec(self, refused: Collection[CompressionType] = ()) -> CompressionType:
        """The first that it accepts, whose library is installed, and that is not among the ``refused``."""
        for codec in self.codecs:
            if codec not in refused and is_installed(codec):
                return codec
        return CompressionType.NONE


_CODECS: Final = frozenset(int(codec) for codec in CompressionType)
