from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from aioproducer import DeliveryError, ProducerInterceptor, ProducerRecord
from aioproducer.broker import EmbeddedCluster
from aioproducer.errors import IllegalStateException, SerializationException
from aioproducer.integrations.opentelemetry import OpenTelemetryReporter, TracingInterceptor
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


async def test_a_failure_is_told_wherever_it_happens(traces: Traces) -> None:
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
    told = [(span.attributes or {}).get("error.type") for span in traces.named("send t")]
    assert told == ["SerializationException", "RecordTooLargeException", None, "KafkaError"]
    last = traces.named("send t")[-1]
    assert last.status.status_code is StatusCode.ERROR
    assert (last.attributes or {})["aioproducer.outcome"] == lost.outcome.value


async def test_what_is_not_sampled_is_handed_on_and_kept_nowhere() -> None:
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

    def collect(self) -> dict[str, dict[tuple[str, ...], float]]:
        data = self._reader.get_metrics_data()
        scopes = [] if data is None else [scope for found in data.resource_metrics for scope in found.scope_metrics]
        return {
            metric.name: {
                tuple(str(value) for _, value in sorted((point.attributes or {}).items())): point.value
                for point in metric.data.data_points
                if isinstance(point, NumberDataPoint)
            }
            for scope in scopes
            for metric in scope.metrics
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
