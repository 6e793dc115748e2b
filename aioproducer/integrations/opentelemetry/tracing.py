"""A span for every record, by OpenTelemetry's semantic conventions for messaging and Kafka."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple
from uuid import UUID

from opentelemetry import propagate, trace
from opentelemetry.context import Context, get_current
from opentelemetry.metrics import MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer, TracerProvider

from aioproducer import DeliveryError, ProducerInterceptor, ProducerRecord, RecordMetadata, TopicPartition
from aioproducer.integrations.opentelemetry.conventions import SCHEMA_URL, SENDING, OperationMetrics
from aioproducer.types import Headers

_Key = tuple[str, tuple[bytes | None, ...]]
"""Identifies an open span by its record: the topic, and the context in the headers."""


class _UnderWay(NamedTuple):
    span: Span
    began: float


class TracingInterceptor(ProducerInterceptor):
    """One of a producer's ``interceptor_classes``: a span ``send <topic>`` from ``send`` to the record's end.

    Its parent is the span that is current where ``send`` is called. Its context goes into the record's headers (W3C's
    ``traceparent`` and ``tracestate`` by default), so consumers can continue the trace. A record that already has such
    a context, because it was read from a topic and is passed on, keeps it, and the span is linked to it.

    Make it the last interceptor: if a later one removes those headers, spans end only when the producer is closed. A
    record that is not sampled only gets the context.

    ``client_id`` is the producer's, for ``messaging.client.id``. ``keys`` are left out of spans by default, because
    they may identify people. With ``metrics``, the conventions' metrics are recorded for every record, sampled or not:
    ``messaging.client.operation.duration`` and ``messaging.client.sent.messages``. ``tracer_provider``,
    ``meter_provider`` and ``propagator`` are the global ones by default.
    """

    def __init__(
        self,
        *,
        client_id: str | None = None,
        keys: bool = False,
        metrics: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
    ) -> None:
        self._tracer: Tracer = trace.get_tracer("aioproducer", None, tracer_provider, SCHEMA_URL)
        self._metrics = OperationMetrics(meter_provider) if metrics else None
        self._propagator = propagate.get_global_textmap() if propagator is None else propagator
        self._fields = frozenset(self._propagator.fields)
        self._keys = keys
        self._common = SENDING if client_id is None else {**SENDING, "messaging.client.id": client_id}
        self._under_way: dict[_Key, list[_UnderWay]] = {}

    # A record before it is sent

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        headers: Headers = tuple(record.headers or ())
        carried = self._carried(headers) if headers else {}
        brought = self._span_context_in(carried) if carried else None
        if brought is None:
            span = self._start(record, SpanKind.PRODUCER, ())
            headers = self._passed_on(headers, carried, span)
            record = record._replace(headers=headers)
        else:
            span = self._start(record, SpanKind.CLIENT, (Link(brought),))
        if span.is_recording() or self._metrics is not None:
            self._under_way.setdefault(self._key(record.topic, headers), []).append(_UnderWay(span, perf_counter()))
        return record

    def _carried(self, headers: Headers) -> dict[str, str]:
        """The headers that the propagator can read."""
        return {
            name: value.decode(errors="replace")
            for name, value in headers
            if name in self._fields and value is not None
        }

    def _span_context_in(self, carried: dict[str, str]) -> SpanContext | None:
        """The context that a record already has, if it can be read."""
        found = trace.get_current_span(self._propagator.extract(carried, Context())).get_span_context()
        return found if found.is_valid else None

    def _passed_on(self, headers: Headers, carried: dict[str, str], span: Span) -> Headers:
        """The headers with the span's context, which replaces an unreadable one; baggage is kept."""
        context = self._propagator.extract(carried, get_current()) if carried else None
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, trace.set_span_in_context(span, context))
        kept = (header for header in headers if header[0] not in self._fields)
        return (*kept, *((name, value.encode()) for name, value in carrier.items()))

    def _start(self, record: ProducerRecord, kind: SpanKind, links: tuple[Link, ...]) -> Span:
        attributes: dict[str, str | bool] = {**self._common, "messaging.destination.name": record.topic}
        if record.partition is not None:
            attributes["messaging.destination.partition.id"] = str(record.partition)
        if self._keys and (key := _as_text(record.key)) is not None:
            attributes["messaging.kafka.message.key"] = key
        if record.value is None:
            attributes["messaging.kafka.message.tombstone"] = True
        return self._tracer.start_span(f"send {record.topic}", kind=kind, attributes=attributes, links=links)

    # The end of a record

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Headers) -> None:
        span = self._take(metadata.topic, headers, error, batched=True)
        if span is None:
            return
        if metadata.partition >= 0:
            span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
        if metadata.offset >= 0:
            span.set_attribute("messaging.kafka.offset", metadata.offset)
        _end(span, error)

    def on_send_error(self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException) -> None:
        span = self._take(record.topic, record.headers or (), error, batched=False)
        if span is not None:
            _end(span, error)

    def close(self) -> None:
        """Ends the spans of records whose headers another interceptor removed."""
        for found in self._under_way.values():
            for one in found:
                _end(one.span, None)
        self._under_way.clear()

    def _key(self, topic: str, headers: Headers) -> _Key:
        return topic, tuple(value for name, value in headers if name in self._fields)

    def _take(self, topic: str, headers: Headers, error: BaseException | None, *, batched: bool) -> Span | None:
        """The record's span. Two spans have the same key if a record was passed on twice to the same topic."""
        key = self._key(topic, headers)
        found = self._under_way.get(key)
        if found is None:
            return None
        one = found.pop(0)
        if not found:
            del self._under_way[key]
        if self._metrics is not None:
            self._metrics.ended(topic, perf_counter() - one.began, error, batched=batched)
        return one.span


def _as_text(key: Any) -> str | None:
    """The key, if it has an unambiguous form as text."""
    if isinstance(key, bytes):
        try:
            return key.decode()
        except UnicodeDecodeError:
            return None
    return str(key) if isinstance(key, str | int | UUID) else None


def _end(span: Span, error: BaseException | None) -> None:
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        if isinstance(error, DeliveryError):
            span.set_attribute("aioproducer.outcome", error.outcome.value)
        span.set_status(Status(StatusCode.ERROR, str(error)))
    span.end()
