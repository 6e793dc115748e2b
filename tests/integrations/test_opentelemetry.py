from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, Metric, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv._incubating.metrics import messaging_metrics
from opentelemetry.trace import SpanKind, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from aioproducer import DeliveryError, ProducerInterceptor, ProducerRecord
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalStateException, SerializationException
from aioproducer.integrations.opentelemetry import OpenTelemetryReporter, TracingInterceptor, conventions, tracing
from aioproducer.integrations.opentelemetry.conventions import DURATION_BUCKETS, SENDING
from aioproducer.testing import MockProducer, SyncMockProducer
from tests.support.leaks import no_leaks as no_leaks
from tests.support.producing import make_producer

pytestmark = pytest.mark.usefixtures("no_leaks")


class Traces:
    """A provider that keeps what ends."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**options, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")

    def interceptor(self, **options: Any) -> TracingInterceptor:
        options.setdefault("propagator", TraceContextTextMapPropagator())
        return TracingInterceptor(tracer_provider=self.provider, **options)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]


@pytest.fixture
def traces() -> Iterator[Traces]:
    found = Traces()
    yield found
    found.provider.shutdown()


def header(cluster: EmbeddedCluster, topic: str, name: str = "traceparent") -> list[bytes | None]:
    return [value for record in cluster.log(topic).records() for key, value in record.headers if key == name]


def traceparent(span: ReadableSpan) -> bytes:
    context = span.get_span_context()
    assert context is not None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}".encode()


async def test_a_span_per_record_whose_context_is_in_its_headers(traces: Traces) -> None:
    async with EmbeddedCluster() as cluster:
        tracing = traces.interceptor(client_id="me", keys=True)
        async with make_producer(cluster.bootstrap_servers, interceptor_classes=[tracing]) as producer:
            with traces.tracer.start_as_current_span("request") as request:
                await producer.send("orders", b"1", key=b"k", headers=[("mine", b"here")])
            await producer.send("orders", None)
        first, second = traces.named("send orders")
        assert header(cluster, "orders") == [traceparent(first), traceparent(second)]
        assert header(cluster, "orders", "mine") == [b"here"]
    assert first.parent is not None
    assert first.parent.span_id == request.get_span_context().span_id
    assert (first.kind, first.status.status_code) == (SpanKind.PRODUCER, StatusCode.UNSET)
    assert dict(first.attributes or {}) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.client.id": "me",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": "0",
        "messaging.kafka.message.key": "k",
        "messaging.kafka.offset": 0,
    }
    assert second.parent is None
    assert (second.attributes or {})["messaging.kafka.message.tombstone"] is True


async def test_a_context_that_a_record_brings_is_kept_and_linked(traces: Traces) -> None:
    brought = b"00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    async with EmbeddedCluster() as cluster:
        tracing = traces.interceptor()
        async with make_producer(cluster.bootstrap_servers, interceptor_classes=[tracing]) as producer:
            passed_on = [producer.send("copy", b"%d" % number, headers=[("traceparent", brought)]) for number in (1, 2)]
            await asyncio.gather(*passed_on)
            await producer.send("copy", b"3", headers=[("traceparent", b"nonsense")])
        *linked, anew = traces.named("send copy")
        assert header(cluster, "copy") == [brought, brought, traceparent(anew)]
    assert [(span.kind, len(span.links)) for span in linked] == [(SpanKind.CLIENT, 1)] * 2
    assert [f"{link.context.span_id:x}" for span in linked for link in span.links] == ["123456789abcdef"] * 2
    assert [(span.attributes or {})["messaging.kafka.offset"] for span in linked] == [0, 1]
    assert (anew.kind, anew.links) == (SpanKind.PRODUCER, ())


async def test_a_failure_is_in_the_span_wherever_it_happens(traces: Traces) -> None:
    def serialize(value: bytes) -> bytes:
        if value == b"bad":
            raise ValueError("bad")
        return value

    async with EmbeddedCluster() as cluster:
        config = {
            "value_serializer": serialize,
            "max_request_size": 1000,
            "interceptor_classes": [traces.interceptor()],
        }
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            with pytest.raises(SerializationException):
                _ = producer.send("t", b"bad")
            with pytest.raises(DeliveryError):
                await producer.send("t", bytes(2000))
            await producer.send("t", b"good")
            await cluster.stop_node(0)
            lost = producer.send("t", b"lost")
            await producer.close(timeout=0)
            assert lost.outcome is not None
    error_types = [(span.attributes or {}).get("error.type") for span in traces.named("send t")]
    assert error_types == ["SerializationException", "RecordTooLargeException", None, "KafkaError"]
    last = traces.named("send t")[-1]
    assert last.status.status_code is StatusCode.ERROR
    assert (last.attributes or {})["aioproducer.outcome"] == lost.outcome.value


async def test_an_unsampled_trace_is_handed_on_and_kept_nowhere() -> None:
    traces = Traces(sampler=ALWAYS_OFF)
    tracing = traces.interceptor()
    async with EmbeddedCluster() as cluster:
        async with make_producer(cluster.bootstrap_servers, interceptor_classes=[tracing]) as producer:
            delivery = producer.send("t", b"value")
            assert tracing._under_way == {}
            await delivery
        ((context,),) = [header(cluster, "t")]
        assert context is not None
        assert int(context.rpartition(b"-")[2], 16) & TraceFlags.SAMPLED == 0
    assert traces.named("send t") == []
    traces.provider.shutdown()


async def test_without_a_context_to_hand_on_nothing_is_added(traces: Traces) -> None:
    async with EmbeddedCluster() as cluster:
        tracing = traces.interceptor(propagator=CompositePropagator([]))
        async with make_producer(cluster.bootstrap_servers, interceptor_classes=[tracing]) as producer:
            await asyncio.gather(*(producer.send("t", b"%d" % number) for number in range(3)))
        assert [list(record.headers) for record in cluster.log("t").records()] == [[]] * 3
    assert len(traces.named("send t")) == 3


async def test_spans_whose_headers_were_taken_away_end_with_the_producer(traces: Traces) -> None:
    class Bare(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(headers=None)

    async with EmbeddedCluster() as cluster:
        config = {"interceptor_classes": [traces.interceptor(), Bare()]}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            await producer.send("t", b"value")
            assert traces.named("send t") == []
    assert len(traces.named("send t")) == 1


class Figures:
    """What a reader collects, by instrument: attributes and value."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def metrics(self) -> list[Metric]:
        data = self._reader.get_metrics_data()
        scopes = [] if data is None else [scope for found in data.resource_metrics for scope in found.scope_metrics]
        return [metric for scope in scopes for metric in scope.metrics]

    def collect(self) -> dict[str, dict[tuple[str, ...], float]]:
        return {
            metric.name: {
                tuple(str(value) for _, value in sorted((point.attributes or {}).items())): point.value
                for point in metric.data.data_points
                if isinstance(point, NumberDataPoint)
            }
            for metric in self.metrics()
        }


async def test_metrics_are_observed_by_client_topic_and_node() -> None:
    figures = Figures()
    async with EmbeddedCluster() as cluster:
        one, other = (
            make_producer(
                cluster.bootstrap_servers, client_id=name, metric_reporters=[OpenTelemetryReporter(figures.provider)]
            )
            for name in ("one", "other")
        )
        async with one, other:
            await one.send("orders", b"value")
            found = figures.collect()
            assert found["kafka.producer.record_delivered_total"] == {("one",): 1, ("other",): 0}
            assert found["kafka.producer_topic.record_send_total"] == {("one", "orders"): 1}
            assert ("one", "node-0") in found["kafka.producer_node.request_latency_avg"]
            assert found["kafka.producer.buffer_total_bytes"][("one",)] == one.config.buffer_memory
            assert "kafka.producer.batch_linger_avg" not in found
            await one.close()
            assert figures.collect()["kafka.producer.record_delivered_total"].keys() == {("other",)}
    figures.provider.shutdown()


async def test_a_reporter_is_one_producers() -> None:
    figures = Figures()
    reporter = OpenTelemetryReporter(figures.provider)
    async with EmbeddedCluster() as cluster, make_producer(cluster.bootstrap_servers) as producer:
        reporter.init(producer)
        with pytest.raises(IllegalStateException, match="one for each"):
            reporter.init(producer)
        await reporter.close()
    figures.provider.shutdown()


async def test_two_producers_of_one_client_id_are_not_mixed(caplog: pytest.LogCaptureFixture) -> None:
    figures = Figures()
    async with EmbeddedCluster() as cluster:
        one, other = (
            make_producer(
                cluster.bootstrap_servers, client_id="me", metric_reporters=[OpenTelemetryReporter(figures.provider)]
            )
            for _ in range(2)
        )
        async with one, other:
            await one.send("t", b"value")
            assert figures.collect()["kafka.producer.record_delivered_total"] == {("me",): 1}
    assert "client_id='me', too: give each its own" in caplog.text
    figures.provider.shutdown()


async def test_figures_have_units() -> None:
    figures = Figures()
    async with EmbeddedCluster() as cluster:
        reporter = OpenTelemetryReporter(figures.provider)
        async with make_producer(cluster.bootstrap_servers, metric_reporters=[reporter]) as producer:
            await producer.send("t", b"value")
            units = {metric.name.removeprefix("kafka."): metric.unit for metric in figures.metrics()}
    figures.provider.shutdown()
    assert {
        "producer.request_latency_avg": "ms",
        "producer.record_send_rate": "1/s",
        "producer.record_send_total": "",
        "producer.buffer_total_bytes": "By",
        "producer.bufferpool_wait_ratio": "1",
        "producer.compression_rate_avg": "1",
        "producer.flush_time_ns_total": "ns",
        "producer.metadata_age": "s",
        "producer.request_size_max": "By",
        "producer_topic.byte_rate": "By/s",
        "producer_topic.compression_rate": "1",
    }.items() <= units.items()


async def test_the_conventions_metrics_count_and_time_every_record() -> None:
    traces, figures = Traces(sampler=ALWAYS_OFF), Figures()
    tracing = traces.interceptor(metrics=True, meter_provider=figures.provider)
    async with EmbeddedCluster() as cluster:
        config = {"interceptor_classes": [tracing], "max_request_size": 1000}
        async with make_producer(cluster.bootstrap_servers, **config) as producer:
            await asyncio.gather(*(producer.send("t", b"%d" % number) for number in range(3)))
            with pytest.raises(DeliveryError):
                await producer.send("t", bytes(2000))
            assert tracing._under_way == {}
    by_name = {metric.name: metric for metric in figures.metrics()}
    common = {**SENDING, "messaging.destination.name": "t"}
    sent = by_name["messaging.client.sent.messages"]
    assert sent.unit == "{message}"
    (count,) = sent.data.data_points
    assert isinstance(count, NumberDataPoint)
    assert (count.value, count.attributes) == (3, common)
    duration = by_name["messaging.client.operation.duration"]
    assert duration.unit == "s"
    good, bad = duration.data.data_points
    assert isinstance(good, HistogramDataPoint)
    assert isinstance(bad, HistogramDataPoint)
    assert (good.count, good.attributes, tuple(good.explicit_bounds)) == (3, common, DURATION_BUCKETS)
    assert (bad.count, bad.attributes) == (1, {**common, "error.type": "RecordTooLargeException"})
    figures.provider.shutdown()
    traces.provider.shutdown()


async def test_a_context_that_cannot_be_read_leaves_nothing_of_itself(traces: Traces) -> None:
    """A tracestate belongs to its traceparent; baggage is for whoever comes next."""
    both = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])
    async with EmbeddedCluster() as cluster:
        tracing = traces.interceptor(propagator=both)
        async with make_producer(cluster.bootstrap_servers, interceptor_classes=[tracing]) as producer:
            brought = [("traceparent", b"nonsense"), ("tracestate", b"vendor=1"), ("baggage", b"tenant=7")]
            await producer.send("t", b"1", headers=[*brought, ("mine", b"here")])
            await producer.send("t", b"2", headers=[("baggage", b"tenant=7")])
        spans = traces.named("send t")
        assert [sorted(record.headers) for record in cluster.log("t").records()] == [
            [("baggage", b"tenant=7"), ("mine", b"here"), ("traceparent", traceparent(spans[0]))],
            [("baggage", b"tenant=7"), ("traceparent", traceparent(spans[1]))],
        ]


@pytest.mark.parametrize(
    ("key", "text"), [("k", "k"), (b"k", "k"), (7, "7"), (UUID(int=1), str(UUID(int=1))), (b"\xff", None), ((1,), None)]
)
async def test_only_keys_with_an_unambiguous_text_are_in_spans(traces: Traces, key: Any, text: str | None) -> None:
    tracing = traces.interceptor(keys=True)
    async with MockProducer(interceptor_classes=[tracing], key_serializer=lambda key: b"k") as producer:
        await producer.send("t", b"value", key=key, partition=0)
    (span,) = traces.named("send t")
    assert (span.attributes or {}).get("messaging.kafka.message.key") == text


def test_names_are_those_of_the_conventions() -> None:
    """Each is in OpenTelemetry's own list, and not among those that were replaced."""
    replaced = {
        messaging_attributes.MESSAGING_OPERATION,
        messaging_attributes.MESSAGING_KAFKA_MESSAGE_OFFSET,
        messaging_attributes.MESSAGING_KAFKA_DESTINATION_PARTITION,
    }
    known = {value for name, value in vars(messaging_attributes).items() if name.startswith("MESSAGING_")} - replaced
    sources = "".join(Path(module.__file__ or "").read_text() for module in (conventions, tracing))
    used = set(re.findall(r'"(messaging\.[a-z_.]+)"', sources)) - {
        messaging_metrics.MESSAGING_CLIENT_OPERATION_DURATION,
        messaging_metrics.MESSAGING_CLIENT_SENT_MESSAGES,
    }
    assert len(used) > 7
    assert used <= known


def test_the_span_of_a_thread_is_the_parent_of_what_it_sends(traces: Traces) -> None:
    """The producer for threads calls interceptors in a thread of its own."""
    with SyncMockProducer(interceptor_classes=[traces.interceptor()]) as producer:
        for number in range(2):
            with traces.tracer.start_as_current_span(f"request {number}"):
                producer.send("t", b"%d" % number).result(timeout=5)
    requests = [traces.named(f"request {number}")[0].get_span_context() for number in range(2)]
    parents = [span.parent for span in traces.named("send t")]
    assert [parent and parent.span_id for parent in parents] == [request and request.span_id for request in requests]
