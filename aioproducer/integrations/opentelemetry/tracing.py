"""A span for every record, by OpenTelemetry's semantic conventions for messaging and Kafka."""

from __future__ import annotations

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer, TracerProvider

from aioproducer import DeliveryError, ProducerInterceptor, ProducerRecord, RecordMetadata, TopicPartition
from aioproducer.types import Headers

_Key = tuple[str, tuple[bytes | None, ...]]
"""What identifies a span under way by its record: the topic, and the context in the headers."""


class TracingInterceptor(ProducerInterceptor):
    """One of the ``interceptor_classes``: a span ``send <topic>`` from ``send`` to the record's end.

    Its parent is the span that is current where ``send`` is called. Its context goes into the record's headers (W3C's
    ``traceparent`` and ``tracestate`` by default), so consumers can continue the trace. A record that already has such
    a context, because it was read from a topic and is passed on, keeps it, and the span is linked to it.

    It should be the last interceptor: if a later one removes those headers, spans do not end before the producer is
    closed. Where nothing is sampled, only the context is passed on.

    ``client_id`` is the producer's, for ``messaging.client.id``. ``keys`` are left out of spans by default, because
    they may identify people. ``tracer_provider`` and ``propagator`` are the global ones by default.
    """

    def __init__(
        self,
        *,
        client_id: str | None = None,
        keys: bool = False,
        tracer_provider: TracerProvider | None = None,
        propagator: TextMapPropagator | None = None,
    ) -> None:
        self._tracer: Tracer = trace.get_tracer("aioproducer", tracer_provider=tracer_provider)
        self._propagator = propagate.get_global_textmap() if propagator is None else propagator
        self._fields = frozenset(self._propagator.fields)
        self._keys = keys
        self._common = {
            "messaging.system": "kafka",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
        }
        if client_id is not None:
            self._common["messaging.client.id"] = client_id
        self._under_way: dict[_Key, list[Span]] = {}

    # The record on its way in

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        headers = tuple(record.headers or ())
        brought = self._context_in(headers) if headers else None
        if brought is None:
            span = self._start(record, SpanKind.PRODUCER, ())
            carrier: dict[str, str] = {}
            self._propagator.inject(carrier, trace.set_span_in_context(span))
            kept = (header for header in headers if header[0] not in carrier)
            headers = (*kept, *((name, value.encode()) for name, value in carrier.items()))
            record = record._replace(headers=headers)
        else:
            span = self._start(record, SpanKind.CLIENT, (Link(brought),))
        if span.is_recording():
            self._under_way.setdefault(self._key(record.topic, headers), []).append(span)
        return record

    def _context_in(self, headers: Headers) -> SpanContext | None:
        """The context that a record already has, if it can be read."""
        carrier = {
            name: value.decode(errors="replace")
            for name, value in headers
            if name in self._fields and value is not None
        }
        if not carrier:
            return None
        found = trace.get_current_span(self._propagator.extract(carrier, Context())).get_span_context()
        return found if found.is_valid else None

    def _start(self, record: ProducerRecord, kind: SpanKind, links: tuple[Link, ...]) -> Span:
        attributes: dict[str, str | bool] = {**self._common, "messaging.destination.name": record.topic}
        if self._keys and record.key is not None:
            key = record.key
            attributes["messaging.kafka.message.key"] = (
                key.decode(errors="backslashreplace") if isinstance(key, bytes) else str(key)
            )
        if record.value is None:
            attributes["messaging.kafka.message.tombstone"] = True
        return self._tracer.start_span(f"send {record.topic}", kind=kind, attributes=attributes, links=links)

    # Its end

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Headers) -> None:
        span = self._take(metadata.topic, headers)
        if span is None:
            return
        if metadata.partition >= 0:
            span.set_attribute("messaging.destination.partition.id", str(metadata.partition))
        if metadata.offset >= 0:
            span.set_attribute("messaging.kafka.offset", metadata.offset)
        _end(span, error)

    def on_send_error(self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException) -> None:
        span = self._take(record.topic, record.headers or ())
        if span is not None:
            _end(span, error)

    def close(self) -> None:
        """Ends the spans of records whose headers another interceptor removed."""
        for spans in self._under_way.values():
            for span in spans:
                _end(span, None)
        self._under_way.clear()

    def _key(self, topic: str, headers: Headers) -> _Key:
        return topic, tuple(value for name, value in headers if name in self._fields)

    def _take(self, topic: str, headers: Headers) -> Span | None:
        """The record's span. If a record was passed on twice to the same topic, two have the same context."""
        key = self._key(topic, headers)
        spans = self._under_way.get(key)
        if spans is None:
            return None
        span = spans.pop(0)
        if not spans:
            del self._under_way[key]
        return span


def _end(span: Span, error: BaseException | None) -> None:
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        if isinstance(error, DeliveryError):
            span.set_attribute("aioproducer.outcome", error.outcome.value)
        span.set_status(Status(StatusCode.ERROR, str(error)))
    span.end()
