"""The interceptor that stamps every record and logs its outcome."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import Final, Protocol

from aioproducer.delivery_log.events import (
    COUNTER_HEADER,
    SENT_HEADER,
    STREAM_HEADER,
    acked,
    event,
    failed,
    quoted,
    sent,
)
from aioproducer.delivery_log.file_sink import FileSink
from aioproducer.errors import DeliveryError, IllegalArgumentException, Outcome
from aioproducer.producer.hooks.interceptors import ProducerInterceptor
from aioproducer.record_metadata import RecordMetadata
from aioproducer.types import Headers, ProducerRecord, TopicPartition

_STAMPS: Final = (STREAM_HEADER, COUNTER_HEADER, SENT_HEADER)


class Sink(Protocol):
    """Takes events, as lines of JSON without line ends. Called on the producer's event loop: it must not block."""

    def write(self, line: bytes) -> None: ...

    def close(self) -> None: ...


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class DeliveryLog(ProducerInterceptor):
    """Stamps each record with stream id, counter and time as headers, and writes to the sinks when it was sent and how
    it ended.

    A sink is a path (see :class:`FileSink`) or an object with ``write`` and ``close``, such as :class:`TopicSink`. Each
    sink gets all events, and is closed with the producer. ``stream_id`` distinguishes one producer's records from all
    others; by default it is a random UUID. ``clock_ms`` is the wall clock, in milliseconds since the epoch. One log is
    for one producer. It should be the last interceptor, so that no later one changes what it has written down.
    """

    def __init__(
        self,
        *sinks: str | os.PathLike[str] | Sink,
        stream_id: str | None = None,
        clock_ms: Callable[[], int] = _now_ms,
    ) -> None:
        if not sinks:
            raise IllegalArgumentException("a DeliveryLog needs a sink: a path, or an object with write and close")
        self.stream_id = str(uuid.uuid4()) if stream_id is None else stream_id
        self._stream = self.stream_id.encode()
        self._quoted = quoted(self.stream_id)
        self._clock_ms = clock_ms
        self.sent = 0
        self.acked = 0
        self.failed = 0
        self._sinks: list[Sink] = [FileSink(sink) if isinstance(sink, str | os.PathLike) else sink for sink in sinks]

    def _write(self, line: bytes) -> None:
        for sink in self._sinks:
            sink.write(line)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        now = self._clock_ms()
        number = self.sent + 1
        stamps = (
            (STREAM_HEADER, self._stream),
            (COUNTER_HEADER, b"%d" % number),
            (SENT_HEADER, b"%d" % now),
        )
        headers = record.headers
        # A record that was read from a topic and is passed on still has the stamps of its first sending.
        kept = [header for header in headers if header[0] not in _STAMPS] if headers else ()
        stamped = record._replace(headers=(*kept, *stamps))
        if not self.sent:
            self._write(event("open", stream=self.stream_id, time_ms=now))
        self.sent = number
        self._write(sent(self._quoted, number, now, record.topic, record.partition))
        return stamped

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Headers) -> None:
        if error is None:
            self.acked += 1
            counter, sent_ms = _stamps(headers)
            self._write(acked(self._quoted, counter, self._clock_ms(), sent_ms, metadata))
        else:
            outcome = error.outcome if isinstance(error, DeliveryError) else Outcome.UNKNOWN
            self._failed(metadata.topic, metadata.partition, outcome, error, headers)

    def on_send_error(self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException) -> None:
        self._failed(*topic_partition, Outcome.NOT_SENT, error, record.headers or ())

    def _failed(self, topic: str, partition: int, outcome: Outcome, error: BaseException, headers: Headers) -> None:
        self.failed += 1
        now, (counter, _) = self._clock_ms(), _stamps(headers)
        self._write(failed(self.stream_id, counter, now, topic, partition, outcome.value, error))

    def close(self) -> None:
        try:
            if self.sent:
                counts = {"sent": self.sent, "acked": self.acked, "failed": self.failed}
                self._write(event("close", stream=self.stream_id, time_ms=self._clock_ms(), **counts))
        finally:
            for sink in self._sinks:
                sink.close()


def _stamps(headers: Headers) -> tuple[int | None, int | None]:
    """The record's number, and when it was sent; None for what a later interceptor removed."""
    sent_ms = None
    for name, value in reversed(headers):  # the stamps are the last ones, and the number comes before the time
        if name == COUNTER_HEADER:
            return _number(value), sent_ms
        if name == SENT_HEADER:
            sent_ms = _number(value)
    return None, sent_ms


def _number(value: bytes | None) -> int | None:
    return int(value) if value is not None and value.isdigit() else None
