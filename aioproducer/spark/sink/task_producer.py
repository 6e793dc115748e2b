"""The producer of a task. If the user wants a delivery log, it writes one, and the audit can judge Spark's writes."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from aioproducer import KafkaProducer
from aioproducer.delivery_log import DeliveryLog
from aioproducer.delivery_log.delivery_log import Sink
from aioproducer.delivery_log.events import event
from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.sink.sink_options import TOPIC, SinkOptions

log = logging.getLogger(__name__)

_CAPACITY: Final = 64 << 20
"""Bytes of lines that wait to be sent; those beyond are lost, and counted."""

_NOT_OF_A_LOG: Final = ("transactional.id", "interceptor.classes", "partitioner.class", "client.id")
"""Configs of the rows' producer that the producer of a log does not share."""


@asynccontextmanager
async def task_producer(options: SinkOptions, transactional_id: str | None = None) -> AsyncIterator[KafkaProducer]:
    """A producer for rows, with the user's configs. The delivery log has all of its events when the block has ended."""
    configs: dict[str, Any] = dict(options.configs)
    if transactional_id is not None:
        configs["transactional.id"] = transactional_id
    if options.delivery_log is None:
        async with KafkaProducer.from_config(configs) as producer:
            yield producer
    elif options.delivery_log.startswith(TOPIC):
        topic = options.delivery_log.removeprefix(TOPIC)
        carrying = {name: value for name, value in options.configs.items() if name not in _NOT_OF_A_LOG}
        async with (
            KafkaProducer.from_config(carrying) as carrier,
            _LinesToTopic(carrier, topic) as lines,
            KafkaProducer.from_config(_logged(configs, lines)) as producer,
        ):
            yield producer
    else:
        stream = str(uuid.uuid4())
        file = await asyncio.to_thread(_file, options.delivery_log, stream)
        async with KafkaProducer.from_config(_logged(configs, file, stream)) as producer:
            yield producer


def _file(directory: str, stream: str) -> Path:
    """A file of its own for each stream: two tasks never write to the same one."""
    file = Path(directory, f"{stream}.jsonl")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError as error:
        raise IllegalArgumentException(
            f'option "deliveryLog" is {directory!r}, a directory in which this task cannot write: '
            f"{error.strerror}: {error.filename!r}"
        ) from error
    return file


def _logged(configs: Mapping[str, Any], sink: Path | Sink, stream: str | None = None) -> dict[str, Any]:
    """The configs, with a delivery log behind the user's own interceptors."""
    own = [name for one in str(configs.get("interceptor.classes", "")).split(",") if (name := one.strip())]
    return {**configs, "interceptor.classes": [*own, DeliveryLog(sink, stream_id=stream)]}


class _LinesToTopic:
    """Sends lines in the order in which they came, with back-pressure, and says in the topic how many were lost."""

    def __init__(self, producer: KafkaProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._lines: list[bytes] = []
        self._size = 0
        self._lost = 0
        self._changed = asyncio.Event()
        self._ended = False

    def write(self, line: bytes) -> None:
        """Takes an event of the log; never waits."""
        if self._size + len(line) > _CAPACITY:
            self._lost += 1
            return
        self._lines.append(line)
        self._size += len(line)
        self._changed.set()

    def close(self) -> None:
        """Nothing: the last lines are sent when the block is left."""

    async def __aenter__(self) -> _LinesToTopic:
        self._sending = asyncio.create_task(self._send())
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._ended = True
        self._changed.set()
        await self._sending

    async def _send(self) -> None:
        while not (self._ended and not self._lines):
            await self._changed.wait()
            self._changed.clear()
            lines, self._lines, size = self._lines, [], self._size
            if lines:
                await self._send_all(lines)
            self._size -= size
        if self._lost:
            log.error("%d lines of the delivery log could not be written to topic %s", self._lost, self._topic)
            await self._producer.send_many(self._topic, [event("lost", count=self._lost)])

    async def _send_all(self, lines: list[bytes]) -> None:
        result = await self._producer.send_many(self._topic, lines)
        if result.failed:
            self._lost += result.failed
            _, why = result.errors[0]
            log.warning(
                "%d lines of the delivery log were not written to topic %s: %s", result.failed, self._topic, why
            )
