"""Judges a producer's health: rules with thresholds over a metrics snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.metrics import MetricsSnapshot
from aioproducer.metrics.metric_name import NODE_GROUP


class Severity(IntEnum):
    """How soon the finding needs attention."""

    HINT = 0
    """Everything works, but could cost less."""
    WARNING = 1
    """It still works, but will fail if this continues."""
    CRITICAL = 2
    """Records are being lost."""


@dataclass(frozen=True, slots=True)
class HealthThresholds:
    """The limits beyond which a metric is a finding. Rates and averages cover the measured windows, usually a
    minute."""

    buffer_available: float = 0.1
    """Less than this part of buffer.memory is free."""
    unreachable_seconds: float = 0.0
    """No broker has been reachable for at least this long."""
    parked: float = 0.5
    """More than this part of parked.memory is taken."""
    request_latency_ms: float | None = None
    """Answers take longer than this on average; set what your service allows. None: half of request.timeout.ms."""
    unanswered_seconds: float | None = None
    """A request has been unanswered for longer than this, as by a broker that hangs. None: half of
    request.timeout.ms."""
    batch_fill: float = 0.25
    """Batches reach less than this part of batch.size on average…"""
    records_per_request: float = 2.0
    """…or requests have fewer records than this…"""
    busy_requests: float = 100.0
    """…while more requests than this are sent per second: if there are few, their size does not matter."""


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """A metric beyond its threshold."""

    metric: str
    value: float
    threshold: float
    severity: Severity
    what_to_do: str

    def __str__(self) -> str:
        return (
            f"{self.severity.name}: {self.metric} is {self.value:g} (threshold {self.threshold:g}): {self.what_to_do}"
        )


def findings(
    found: MetricsSnapshot, config: ProducerConfig, thresholds: HealthThresholds | None = None
) -> list[HealthFinding]:
    """Every metric beyond its threshold, worst first; none if all is well. NaN is never beyond a threshold."""
    limits = HealthThresholds() if thresholds is None else thresholds
    judged = [
        *_losses(found),
        *_outage(found, limits),
        *_memory(found, config, limits),
        *_latency(found, config, limits),
        *_silence(found, config, limits),
    ]
    judged += _batching(found, config, limits)
    return sorted(judged, key=lambda finding: -finding.severity)


def _losses(found: MetricsSnapshot) -> Iterator[HealthFinding]:
    if found["producer-failed"] > 0:
        yield HealthFinding(
            "producer-failed",
            1.0,
            0.0,
            Severity.CRITICAL,
            "it refuses every record: the error of send() and the log say why; make another producer",
        )
    exhausted = found["buffer-exhausted-rate"]
    if exhausted > 0:
        yield HealthFinding(
            "buffer-exhausted-rate",
            exhausted,
            0.0,
            Severity.CRITICAL,
            "records fail for want of memory: await send() or enqueue(), send less, or raise buffer.memory "
            "or max.block.ms",
        )
    failed = found["record-error-rate"]
    if failed > 0:
        yield HealthFinding(
            "record-error-rate",
            failed,
            0.0,
            Severity.CRITICAL,
            "records are not delivered: the errors of their deliveries and the log name the cause; look at these, "
            "and at record-error-rate of each topic",
        )


def _outage(found: MetricsSnapshot, limits: HealthThresholds) -> Iterator[HealthFinding]:
    unreachable = found["unreachable-age"]
    if unreachable >= limits.unreachable_seconds:
        yield HealthFinding(
            "unreachable-age",
            unreachable,
            limits.unreachable_seconds,
            Severity.WARNING,
            "no broker can be reached; records that have waited for delivery.timeout.ms fail: the log says why "
            "(broker_unreachable); look at the brokers, the network and bootstrap.servers",
        )


def _memory(found: MetricsSnapshot, config: ProducerConfig, limits: HealthThresholds) -> Iterator[HealthFinding]:
    least = limits.buffer_available * config.buffer_memory
    available = found["buffer-available-bytes"]
    if available < least:
        yield HealthFinding(
            "buffer-available-bytes",
            available,
            least,
            Severity.WARNING,
            "little of buffer.memory is left: many partitions have batches that linger (raise buffer.memory), or "
            "records come faster than the brokers take them: await send() or enqueue(), or help the "
            f"brokers{_slowest(found)}",
        )
    most = limits.parked * config.parked_memory
    parked = found["parked-bytes"]
    if parked > most:
        yield HealthFinding(
            "parked-bytes",
            parked,
            most,
            Severity.WARNING,
            "send() soon fails, as too many unawaited records wait for metadata or memory: await it, or check "
            "whether the topics exist (metadata-wait-time-ns-total) and memory is freed (bufferpool-wait-ratio)",
        )


def _latency(found: MetricsSnapshot, config: ProducerConfig, limits: HealthThresholds) -> Iterator[HealthFinding]:
    longest = config.request_timeout_ms / 2 if limits.request_latency_ms is None else limits.request_latency_ms
    latency = found["request-latency-avg"]
    if latency > longest:
        yield HealthFinding(
            "request-latency-avg",
            latency,
            longest,
            Severity.WARNING,
            f"brokers or the network are slow{_slowest(found)}; also look at produce-throttle-time-avg, and whether "
            "something blocks the event loop",
        )


def _silence(found: MetricsSnapshot, config: ProducerConfig, limits: HealthThresholds) -> Iterator[HealthFinding]:
    half = config.request_timeout_ms / 2000
    longest = half if limits.unanswered_seconds is None else limits.unanswered_seconds
    unanswered = found["unanswered-age"]
    if unanswered > longest:
        yield HealthFinding(
            "unanswered-age",
            unanswered,
            longest,
            Severity.WARNING,
            "a broker does not answer: its records are sent again after request.timeout.ms, and fail after "
            "delivery.timeout.ms; see producer.explain(topic, partition), and whether the broker hangs",
        )


def _batching(found: MetricsSnapshot, config: ProducerConfig, limits: HealthThresholds) -> Iterator[HealthFinding]:
    if not found["request-rate"] > limits.busy_requests:
        return
    smallest = limits.batch_fill * config.batch_size
    size = found["batch-size-avg"]
    if size < smallest:
        yield HealthFinding(
            "batch-size-avg",
            size,
            smallest,
            Severity.HINT,
            f"batches are sent far from full: {_linger_longer(config)}, or send to fewer partitions",
        )
    records = found["records-per-request-avg"]
    if records < limits.records_per_request:
        yield HealthFinding(
            "records-per-request-avg",
            records,
            limits.records_per_request,
            Severity.HINT,
            f"nearly every record has a request of its own: {_linger_longer(config)}, and do not await each record "
            "before the next is sent",
        )


def _linger_longer(config: ProducerConfig) -> str:
    if config.pipeline == "auto":
        return "set linger.ms, and not pipeline=auto, so that they wait for more records"
    return f"raise linger.ms ({config.linger_ms})"


def _slowest(found: MetricsSnapshot) -> str:
    """The slowest broker, in words, if there are several."""
    times = {
        name.tag("node-id"): value
        for name, value in found.select(NODE_GROUP).items()
        if name.name == "request-latency-avg" and value >= 0
    }
    if len(times) < 2:
        return ""
    node = max(times, key=lambda node: times[node])
    return f" ({node} is the slowest: {times[node]:.0f} ms)"
