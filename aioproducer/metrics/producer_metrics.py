"""The metrics of a producer, and the methods by which its parts record them.

Sources: Kafka's ``SenderMetricsRegistry``, ``KafkaProducerMetrics``, ``BufferPool`` and ``RecordAccumulator``.
``docs/metrics.md`` is written from the names and words here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from aioproducer.metrics.distribution import Buckets, Distribution
from aioproducer.metrics.metric_name import PARTITION_GROUP, PRODUCER_GROUP, TOPIC_GROUP, MetricName
from aioproducer.metrics.network_metrics import NetworkMetrics
from aioproducer.metrics.registry import MetricRegistry, RecordingLevel
from aioproducer.metrics.snapshot import MetricsSnapshot
from aioproducer.metrics.topic_metrics import TopicTable
from aioproducer.metrics.waiting_time import WaitingTime
from aioproducer.metrics.window_metrics import WindowMetrics

TRANSACTIONAL_CALLS = {
    "init": "init_transactions",
    "begin": "begin_transaction",
    "send-offsets": "send_offsets_to_transaction",
    "prepare": "prepare_transaction",
    "commit": "commit_transaction",
    "abort": "abort_transaction",
}
"""The calls of a transactional producer that have metrics, by their names in those metrics."""


SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
BYTES = (256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0)
"""The bounds of distributions: from a broker in the same rack to delivery.timeout.ms, and up to large batches."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gauges:
    """Figures that are not counted here but read in place; the defaults are those of a producer not started yet."""

    buffer_available: int = 0
    waiting: int = 0
    parked_bytes: int = 0
    parked_records: int = 0
    requests_in_flight: int = 0
    unanswered_since: float = math.nan
    metadata_time: float = -math.inf
    unreachable_since: float = math.nan
    failed: bool = False
    """Whether the producer has failed for good."""
    units_open: int = 0
    units_waiting: int = 0
    unit_bytes: int = 0


class ProducerMetrics:
    """Every sensor of one producer. ``now`` is the loop's time in seconds; times are published in milliseconds.

    ``gauges()`` reads what is not counted here; without it all memory is free.
    """

    def __init__(
        self,
        client_id: str = "",
        *,
        buffer_memory: int = 0,
        window: float = 30.0,
        samples: int = 2,
        level: RecordingLevel = RecordingLevel.INFO,
        start_time_ms: int = 0,
        gauges: Callable[[], Gauges] | None = None,
    ) -> None:
        self._gauges: Callable[[], Gauges] = partial(Gauges, buffer_memory) if gauges is None else gauges
        tags = (("client-id", client_id),)
        self.registry = registry = MetricRegistry(window=window, samples=samples, level=level)
        self._group = registry.group(PRODUCER_GROUP, tags)
        self._acknowledgements = Distribution(
            MetricName("batch-acknowledgement-seconds", PRODUCER_GROUP, tags),
            "seconds from a batch's first record to its acknowledgement, once for each batch",
            SECONDS,
        )
        self._sizes = Distribution(
            MetricName("batch-bytes", PRODUCER_GROUP, tags),
            "bytes of a batch, as it is on the wire, once for each attempt to send it",
            BYTES,
        )
        self._batches(registry)
        self._buffer(registry, buffer_memory)
        self._life()
        self._units()
        self.network = NetworkMetrics(registry, tags)
        self.windows = WindowMetrics(registry, tags)
        self._topics = TopicTable(registry, tags)
        registry.group("app-info", tags).gauge(
            "start-time-ms", "when the producer was made, in milliseconds since the epoch", lambda now: start_time_ms
        )
        registry.group("kafka-metrics-count", tags).gauge(
            "count", "how many metrics there are", lambda now: float(len(registry))
        )

    def _batches(self, registry: MetricRegistry) -> None:
        group = self._group
        self._batch_size = registry.sensor()
        group.average_and_max("batch-size", "bytes of a batch, as it is on the wire", self._batch_size)
        group.count_meter("batch", "batches sent, each attempt counted", self._batch_size, own=True)
        self._compression = registry.sensor()
        group.average(
            "compression-rate", "bytes of a batch as sent, divided by its bytes before compression", self._compression
        )
        self._queue_time = registry.sensor()
        group.average_and_max(
            "record-queue-time", "milliseconds from a batch's first record to its request", self._queue_time
        )
        self._lingers = registry.sensor()
        group.average_and_max(
            "batch-linger",
            "milliseconds that `pipeline=auto` lets a batch wait for more records, unless full or awaited earlier",
            self._lingers,
            own=True,
        )
        self._record_size = registry.sensor()
        group.average_and_max(
            "record-size", "upper bound of the bytes of a batch's largest record, sent alone", self._record_size
        )
        self._records_per_request = registry.sensor()
        group.average("records-per-request", "records in a produce request", self._records_per_request)
        group.meter("record-send", "records sent, each attempt counted", self._records_per_request)
        self._delivered = registry.sensor()
        group.meter(
            "record-delivered", "records delivered: acknowledged, or written with acks=0", self._delivered, own=True
        )
        self._retries = registry.sensor()
        group.meter("record-retry", "records whose batch must be sent again", self._retries)
        self._errors = registry.sensor()
        group.meter("record-error", "records that failed, in a batch or before", self._errors)
        self._splits = registry.sensor()
        group.count_meter("batch-split", "batches split because they were too large for the broker", self._splits)
        self._latency = registry.sensor()
        group.average_and_max("request-latency", "milliseconds from a produce request to its answer", self._latency)
        self._throttle = registry.sensor()
        group.average_and_max(
            "produce-throttle-time", "milliseconds a broker delayed a produce request", self._throttle
        )
        group.gauge(
            "requests-in-flight", "requests without an answer yet", lambda now: float(self._gauges().requests_in_flight)
        )
        group.gauge(
            "unanswered-age",
            "seconds since the oldest of them was sent; NaN if there is none",
            lambda now: now - self._gauges().unanswered_since,
            own=True,
        )
        group.gauge(
            "producer-failed",
            "1 when the producer has failed for good and sends nothing; else 0",
            lambda now: float(self._gauges().failed),
            own=True,
        )

    def _buffer(self, registry: MetricRegistry, buffer_memory: int) -> None:
        group = self._group
        group.gauge("buffer-total-bytes", "the config `buffer.memory`", lambda now: float(buffer_memory))
        group.gauge(
            "buffer-available-bytes",
            "bytes of buffer.memory that no batch holds",
            lambda now: float(self._gauges().buffer_available),
        )
        self._exhausted = registry.sensor()
        group.count_meter("buffer-exhausted", "records that failed because memory was short", self._exhausted)
        self.memory_wait = WaitingTime(registry.sensor())
        group.gauge(
            "bufferpool-wait-ratio", "fraction of the time in which records waited for memory", self.memory_wait.ratio
        )
        group.gauge(
            "bufferpool-wait-time-ns-total",
            "nanoseconds in which records waited for memory",
            self.memory_wait.total_ns,
        )
        group.gauge(
            "waiting-threads",
            "records, of send() or enqueue(), that wait for memory",
            lambda now: float(self._gauges().waiting),
        )
        group.gauge(
            "parked-bytes",
            "bytes of records that wait for serializers, metadata or memory, unawaited; `parked.memory` bounds them",
            lambda now: float(self._gauges().parked_bytes),
            own=True,
        )
        group.gauge(
            "parked-records",
            "records, of send() or enqueue(), that wait for serializers, metadata or memory",
            lambda now: float(self._gauges().parked_records),
            own=True,
        )

    def _life(self) -> None:
        self._flush_seconds = 0.0
        self.metadata_wait = WaitingTime(self.registry.sensor())
        self._group.gauge("flush-time-ns-total", "nanoseconds spent in flush()", lambda now: self._flush_seconds * 1e9)
        self._transaction_seconds = dict.fromkeys(TRANSACTIONAL_CALLS, 0.0)
        for call, name in TRANSACTIONAL_CALLS.items():
            self._group.gauge(
                f"txn-{call}-time-ns-total",
                f"nanoseconds spent in {name}() that succeeded",
                partial(self._transaction_ns, call),
            )
        self._group.gauge(
            "metadata-wait-time-ns-total",
            "nanoseconds in which records waited for metadata",
            self.metadata_wait.total_ns,
        )
        self._group.gauge("metadata-age", "seconds since metadata last arrived; NaN before that", self._metadata_age)
        self._group.gauge(
            "unreachable-age",
            "seconds since an attempt to connect failed, if no broker has been connected since; else NaN",
            lambda now: now - self._gauges().unreachable_since,
            own=True,
        )

    def _units(self) -> None:
        group, registry = self._group, self.registry
        self._units_per_commit = registry.sensor()
        group.average_and_max("units-per-commit", "units committed together", self._units_per_commit, own=True)
        self._unit_commits = registry.sensor()
        group.average_and_max(
            "unit-commit-time",
            "milliseconds from the first unit of a transaction to its commit, with the window",
            self._unit_commits,
            own=True,
        )
        group.count_meter("unit-commit", "transactions of units committed", self._unit_commits, own=True)
        self._unit_aborts = registry.sensor()
        group.count_meter(
            "unit-abort", "transactions of units aborted, to commit their units anew", self._unit_aborts, own=True
        )
        self._unit_successes = registry.sensor()
        group.count_meter("unit-committed", "units committed", self._unit_successes, own=True)
        self._unit_errors = registry.sensor()
        group.count_meter("unit-error", "units that failed after the end of their block", self._unit_errors, own=True)
        group.gauge(
            "units-open", "units whose block is running", lambda now: float(self._gauges().units_open), own=True
        )
        group.gauge(
            "units-waiting",
            "units whose block is over, and that are not committed yet",
            lambda now: float(self._gauges().units_waiting),
            own=True,
        )
        group.gauge(
            "unit-held-bytes",
            "bytes of records that units hold, beside buffer.memory",
            lambda now: float(self._gauges().unit_bytes),
            own=True,
        )

    def _metadata_age(self, now: float) -> float:
        came = self._gauges().metadata_time
        return now - came if came > -math.inf else math.nan

    def _transaction_ns(self, call: str, now: float) -> float:
        return self._transaction_seconds[call] * 1e9

    def snapshot(self, now: float) -> MetricsSnapshot:
        """Every metric at this moment."""
        return MetricsSnapshot(self.registry.values(now), self.distributions())

    def overview(self, now: float) -> MetricsSnapshot:
        """The same without those of topics and partitions, which may be very many."""
        return MetricsSnapshot(self.registry.values(now, (TOPIC_GROUP, PARTITION_GROUP)), self.distributions())

    def distributions(self) -> list[Buckets]:
        """What is counted by bounds, at this moment."""
        return [self._acknowledgements.buckets(), self._sizes.buckets()]

    # What happens

    def batch_sent(
        self, topic: str, *, records: int, size: int, uncompressed: int, largest: int, queued_ms: float, now: float
    ) -> None:
        """A batch is sent, in any attempt. Sizes are in bytes, including the batch's header."""
        ratio = size / uncompressed
        self._batch_size.record(size, now)
        self._sizes.record(size)
        self._compression.record(ratio, now)
        self._queue_time.record(queued_ms, now)
        self._record_size.record(largest, now)
        of_topic = self._topics.of(topic)
        of_topic.records.record(records, now)
        of_topic.bytes.record(size, now)
        of_topic.compression.record(ratio, now)
        of_topic.queue_time.record(queued_ms, now)

    def batch_lingers(self, milliseconds: float, now: float) -> None:
        """pipeline=auto has chosen the longest wait of a batch just opened."""
        self._lingers.record(milliseconds, now)

    def request_sent(self, records: int, now: float) -> None:
        """A produce request is sent, with this many records in all its batches."""
        self._records_per_request.record(records, now)

    def request_answered(self, node_id: int, latency_ms: float, throttle_ms: float, now: float) -> None:
        """A produce request was answered."""
        self._latency.record(latency_ms, now)
        self._throttle.record(throttle_ms, now)
        self.network.node_answered(node_id, latency_ms, now)

    def batch_delivered(self, records: int, created: float, now: float) -> None:
        """A batch was acknowledged, or written with acks=0; its first record came at ``created``."""
        self._delivered.record(records, now)
        self._acknowledgements.record(now - created)

    def records_retried(self, topic: str, count: int, now: float) -> None:
        """Records will be sent again."""
        self._retries.record(count, now)
        of_topic = self._topics.get(topic)
        if of_topic is not None:
            of_topic.retries.record(count, now)

    def records_failed(self, topic: str, count: int, now: float) -> None:
        """Records have failed for good, in a batch or before they joined one."""
        self._errors.record(count, now)
        of_topic = self._topics.get(topic)
        if of_topic is not None:
            of_topic.errors.record(count, now)

    def buffer_exhausted(self, now: float) -> None:
        """A record found no memory; its failure is recorded separately."""
        self._exhausted.record(1.0, now)

    def batch_split(self, now: float) -> None:
        self._splits.record(1.0, now)

    def flushed(self, seconds: float) -> None:
        self._flush_seconds += seconds

    def units_committed(self, units: int, seconds: float, now: float) -> None:
        """A transaction of units is committed, this long after the first of them was put into it."""
        self._units_per_commit.record(units, now)
        self._unit_commits.record(seconds * 1000, now)

    def units_aborted(self, now: float) -> None:
        """A transaction of units is aborted."""
        self._unit_aborts.record(1.0, now)

    def unit_ended(self, now: float, *, failed: bool) -> None:
        """A unit whose block was over is committed, or has failed."""
        (self._unit_errors if failed else self._unit_successes).record(1.0, now)

    def transactional_call(self, call: str, seconds: float) -> None:
        """One of :data:`TRANSACTIONAL_CALLS` has succeeded."""
        self._transaction_seconds[call] += seconds

    def use_topic(self, topic: str) -> None:
        """Makes the metrics of a topic to which a batch is about to be sent."""
        _ = self._topics.of(topic)

    def keeping_topics(self, topics: Collection[str]) -> Iterator[None]:
        """Forgets all topics except these, which are in use, with a pause after every few."""
        # Not ``yield from``: to mypyc that is an await, and nothing compiled awaits (docs/internals/compiled.md).
        return chain(self._topics.keeping(topics), self.windows.keeping(topics))
