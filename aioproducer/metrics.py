"""What a producer counts, in Kafka's metric names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class ProducerMetrics:
    """Counted per batch or request, never per record. Times in seconds here, milliseconds in the snapshot."""

    __slots__ = (
        "batch_bytes",
        "batches",
        "queue_time_max",
        "queue_time_sum",
        "record_errors",
        "record_retries",
        "records_sent",
        "request_latency_max",
        "request_latency_sum",
        "requests",
    )

    def __init__(self) -> None:
        self.records_sent = 0
        self.record_errors = 0
        self.record_retries = 0
        self.batches = 0
        self.batch_bytes = 0
        self.queue_time_sum = 0.0
        self.queue_time_max = 0.0
        self.requests = 0
        self.request_latency_sum = 0.0
        self.request_latency_max = 0.0

    def batch_sent(self, records: int, size: int, queued: float) -> None:
        self.records_sent += records
        self.batches += 1
        self.batch_bytes += size
        self.queue_time_sum += queued
        self.queue_time_max = max(self.queue_time_max, queued)

    def request_answered(self, latency: float) -> None:
        self.request_latency_sum += latency
        self.request_latency_max = max(self.request_latency_max, latency)

    def snapshot(
        self, *, buffer_total: int, buffer_available: int, parked: int, parked_failed: int
    ) -> Mapping[str, float]:
        """Names as in Kafka's ``producer-metrics`` group; an average without samples is 0."""
        batches = self.batches or 1
        requests = self.requests or 1
        return MappingProxyType(
            {
                "record-send-total": self.records_sent,
                "record-error-total": self.record_errors + parked_failed,
                "record-retry-total": self.record_retries,
                "byte-total": self.batch_bytes,
                "batch-total": self.batches,
                "batch-size-avg": self.batch_bytes / batches,
                "record-queue-time-avg": self.queue_time_sum / batches * 1000,
                "record-queue-time-max": self.queue_time_max * 1000,
                "records-per-batch-avg": self.records_sent / batches,
                "records-per-request-avg": self.records_sent / requests,
                "request-total": self.requests,
                "request-latency-avg": self.request_latency_sum / requests * 1000,
                "request-latency-max": self.request_latency_max * 1000,
                "buffer-total-bytes": buffer_total,
                "buffer-available-bytes": buffer_available,
                "parked-bytes": parked,
            }
        )
