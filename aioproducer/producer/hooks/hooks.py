"""The user's code that a producer calls for a record: interceptors, serializers, a partitioner; knows if any is
running.

``depth`` also counts delivery callbacks: in each of them ``flush`` would wait for its own caller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from aioproducer.configs.plugins import made
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import ConfigException, IllegalStateException
from aioproducer.producer.accumulator.record_accumulator import headers_size
from aioproducer.producer.delivery.produce_result import Loop, ProduceResult
from aioproducer.producer.hooks.custom_partitioner import CustomPartitioner
from aioproducer.producer.hooks.interceptors import ProducerInterceptors, unacknowledged
from aioproducer.producer.hooks.pending_serialization import Later, Serialization
from aioproducer.producer.hooks.serialization import Serialize, Unfinished, sees_headers, serializes_later, serializing
from aioproducer.tasks.coroutine_functions import is_async
from aioproducer.types import Headers, PartitionInfo, ProducerRecord, TopicPartition

log = logging.getLogger(__name__)

_NO_HEADERS: list[tuple[str, bytes | None]] = []
"""Stands for the headers if no serializer reads them."""


class Hooks:
    """Made with the producer and fixed from then on; ConfigException for a hook that cannot be made or called."""

    def __init__(self, config: ProducerConfig) -> None:
        self._plugins: list[Any] = []
        self._interceptors: ProducerInterceptors
        self._serialize_key: Serialize
        self._serialize_value: Serialize
        self._sees_headers = False
        self._intercepts = bool(config.interceptor_classes)
        self._partitioner: CustomPartitioner | None = None
        self.serializes = config.key_serializer is not None or config.value_serializer is not None
        self.any = self._intercepts or self.serializes or config.partitioner_class is not None
        """Whether any hook must run before a record is appended."""
        self.asynchronous = False
        """A serializer is a coroutine function: each record waits for its turn."""
        self.serialize = self._serialize_at_once
        """Value and key as bytes, and the headers including additions by serializers; raises ``Later`` if a serializer
        must be awaited."""
        self.depth = 0
        """How many of the user's functions are running now, nested ones included."""
        self.closed = False
        self._intercepting = 0
        self._loop: Loop | None = None
        self._others_wait: Callable[[], bool]
        try:
            self._make(config)
        except BaseException:
            self.close()
            raise

    def _make(self, config: ProducerConfig) -> None:
        interceptors = [self._made("interceptor.classes", one) for one in config.interceptor_classes]
        key = self._made("key.serializer", config.key_serializer)
        value = self._made("value.serializer", config.value_serializer)
        self._interceptors = ProducerInterceptors(interceptors, self._stop)
        self._serialize_key = serializing(key, "key")
        self._serialize_value = serializing(value, "value")
        self._sees_headers = sees_headers(key) or sees_headers(value)
        self.asynchronous = serializes_later(key) or serializes_later(value)
        if self.asynchronous:
            self.serialize = self._serialize_in_turn
        if config.partitioner_class is not None:
            self._partitioner = CustomPartitioner(self._made("partitioner.class", config.partitioner_class))

    def bind(self, loop: Loop, others_wait: Callable[[], bool]) -> None:
        """The producer belongs to this loop from now on; no hook runs before.

        ``others_wait()`` is whether records are waiting for serializers.
        """
        self._loop = loop
        self._others_wait = others_wait

    def _made(self, config: str, plugin: Any) -> Any:
        one = made(plugin, config=config)
        if is_async(getattr(one, "close", None)):
            raise ConfigException(
                f"config {config!r} has {one!r:.100}, whose close() is asynchronous: it is called, not awaited",
                name=config,
                value=one,
            )
        self._plugins.append(one)
        return one

    def intercepts(self) -> bool:
        """Whether a record sent now goes through the interceptors: not if an interceptor sends it."""
        return self._intercepts and not self._intercepting

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record as the interceptors leave it."""
        self._enter()
        try:
            return self._interceptors.on_send(record)
        finally:
            self._leave()

    def on_acknowledgement(self, result: ProduceResult, records: list[tuple[int, Headers]]) -> None:
        """Reports the end of a batch's records, given their index and headers; called by the result when it is done."""
        self._enter()
        try:
            for index, headers in records:
                if result.error is None:
                    self._interceptors.on_acknowledgement(result.metadata(index), None, headers)
                else:
                    failed = unacknowledged(result.topic, result.partition)
                    self._interceptors.on_acknowledgement(failed, result.error.for_record(index), headers)
        finally:
            self._leave()

    def on_send_error(self, record: ProducerRecord, error: BaseException) -> None:
        """Reports the end of a record that is in no batch."""
        where = TopicPartition(record.topic, -1 if record.partition is None else record.partition)
        self._enter()
        try:
            self._interceptors.on_send_error(record, where, error)
        finally:
            self._leave()

    def _enter(self) -> None:
        self.depth += 1
        self._intercepting += 1

    def _leave(self) -> None:
        self._intercepting -= 1
        self.depth -= 1

    def _serialize_in_turn(
        self, topic: str, value: Any, key: Any, headers: Headers | None
    ) -> tuple[Any, Any, Headers | None]:
        """Raises ``Later`` if records wait for serializers, or if these are coroutines."""
        if self.asynchronous or self._others_wait():
            raise Later(self._serialization(topic, value, key, self._own(headers)))
        return self._serialize_at_once(topic, value, key, headers)

    def _serialize_at_once(
        self, topic: str, value: Any, key: Any, headers: Headers | None
    ) -> tuple[Any, Any, Headers | None]:
        self.depth += 1
        try:
            return self.serialized(topic, value, key, headers)
        finally:
            self.depth -= 1

    def serialized(self, topic: str, value: Any, key: Any, headers: Headers | None) -> tuple[Any, Any, Headers | None]:
        """The same in any thread: calls by the serializers there cannot wait for themselves."""
        seen: list[tuple[str, bytes | None]] = _NO_HEADERS
        if self._sees_headers:
            if headers is not None:
                headers_size(headers)  # raises for what are none
            seen = [] if headers is None else list(headers)
        key_bytes = None
        try:
            key_bytes = self._serialize_key(topic, seen, key)
            value_bytes = self._serialize_value(topic, seen, value)
        except Unfinished as unfinished:
            self.serialize = self._serialize_in_turn  # other records may wait from now on
            own = seen if self._sees_headers else self._own(headers)
            raise Later(self._serialization(topic, value, key, own, unfinished, key_bytes)) from None
        return value_bytes, key_bytes, seen or headers

    def _own(self, headers: Headers | None) -> list[tuple[str, bytes | None]]:
        """A record's headers, checked and in a new list."""
        if headers is None:
            return []
        headers_size(headers)  # raises for what are none
        return list(headers)

    def _serialization(self, *given: Any) -> Serialization:
        return Serialization(self._serialize_key, self._serialize_value, *given)

    def partitions(self) -> bool:
        """Whether the user has a partitioner."""
        return self._partitioner is not None

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        infos: Sequence[PartitionInfo],
    ) -> int:
        """What the user's partitioner answers, or PartitionerException."""
        assert self._partitioner is not None
        self.depth += 1
        try:
            return self._partitioner.partition(topic, key, key_bytes, value, value_bytes, infos)
        finally:
            self.depth -= 1

    def check_outside(self, call: str) -> None:
        """IllegalStateException in any user code that the producer has called."""
        if self.depth:
            raise IllegalStateException(
                f"{call} was called in an interceptor, serializer, partitioner or delivery callback, and would wait "
                "for its own caller: call it from a task"
            )

    def close(self) -> None:
        """Closes interceptors, serializers and partitioner, each once, if they have ``close``; logs what they raise."""
        self.closed = True
        for plugin in {id(plugin): plugin for plugin in self._plugins}.values():
            close = getattr(plugin, "close", None)
            if not callable(close):
                continue
            self._enter()
            try:
                close()
            except Exception:
                log.exception("closing %r failed", plugin)
            finally:
                self._leave()

    def _stop(self, error: BaseException) -> None:
        assert self._loop is not None
        self._loop.call_soon(_raise, error)


def _raise(error: BaseException) -> None:
    raise error
