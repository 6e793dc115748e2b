"""The events of a delivery log: one JSON object each (``docs/schemas.md``)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from aioproducer.record_metadata import RecordMetadata
from aioproducer.types import TimestampType

STREAM_HEADER: Final = "aioproducer.stream"
"""The stream's id, as UTF-8."""
COUNTER_HEADER: Final = "aioproducer.counter"
"""The record's number in its stream, from 1 on, in decimal digits."""
SENT_HEADER: Final = "aioproducer.sent"
"""When it was given to ``send``: milliseconds since the epoch, in decimal digits."""

SCHEMA: Final = 1
"""The number of the schema: a field may be added without a new one."""

_TIMESTAMP_TYPES = {TimestampType.CREATE_TIME: b"CreateTime", TimestampType.LOG_APPEND_TIME: b"LogAppendTime"}


@lru_cache(4096)
def quoted(text: str) -> bytes:
    """A name as JSON: the same few occur with every record."""
    return json.dumps(text).encode()


# Formatted by hand, because there are two for every record: json.dumps takes three times as long.


def sent(stream: bytes, counter: int, time_ms: int, topic: str, partition: int | None) -> bytes:
    """``stream`` is already quoted, here and below."""
    return b'{"schema":1,"event":"sent","stream":%b,"counter":%d,"time_ms":%d,"topic":%b,"partition":%b}' % (
        stream,
        counter,
        time_ms,
        quoted(topic),
        b"null" if partition is None else b"%d" % partition,
    )


def acked(stream: bytes, counter: int | None, time_ms: int, sent_ms: int | None, metadata: RecordMetadata) -> bytes:
    return (
        b'{"schema":1,"event":"acked","stream":%b,"counter":%b,"time_ms":%d,"sent_ms":%b,"topic":%b,"partition":%d,"offset":%d,'
        b'"timestamp_ms":%d,"timestamp_type":"%b","key_size":%d,"value_size":%d}'
    ) % (
        stream,
        b"null" if counter is None else b"%d" % counter,
        time_ms,
        b"null" if sent_ms is None else b"%d" % sent_ms,
        quoted(metadata.topic),
        metadata.partition,
        metadata.offset,
        metadata.timestamp_ms,
        _TIMESTAMP_TYPES[metadata.timestamp_type],
        metadata.serialized_key_size,
        metadata.serialized_value_size,
    )


def failed(
    stream: str, counter: int | None, time_ms: int, topic: str, partition: int, outcome: str, error: BaseException
) -> bytes:
    return event(
        "failed",
        stream=stream,
        counter=counter,
        time_ms=time_ms,
        topic=topic,
        partition=None if partition < 0 else partition,
        outcome=outcome,
        error=type(error).__name__,
        message=str(error),
    )


def event(kind: str, **fields: Any) -> bytes:
    """Any event, without the end of its line."""
    return json.dumps({"schema": SCHEMA, "event": kind, **fields}, separators=(",", ":")).encode()


def read_events(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The events of a file in the order written.

    A torn line, such as the last one of a process that was killed, is returned as
    ``{"event": "torn", "line": its number, from 1 on}``.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if line == b"\n":
                continue
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            yield found if isinstance(found, dict) else {"event": "torn", "line": number}
