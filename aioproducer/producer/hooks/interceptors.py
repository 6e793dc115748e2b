"""Interceptors: the user's own code that sees every record before it is sent, and its end (Kafka's KIP-42).

Each record that went through ``on_send`` ends with exactly one call to each interceptor:

- ``on_acknowledgement`` if it was in a batch: delivered, or failed with an error;
- ``on_send_error`` if it never got that far: it could not be serialized, was too large, did not get metadata or memory
  within max.block.ms, was withdrawn, or the producer was closed.

If an interceptor raises, that is logged; it affects neither the record nor the other interceptors.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aioproducer.errors import ConfigException
from aioproducer.record_metadata import RecordMetadata
from aioproducer.tasks.coroutine_functions import is_async
from aioproducer.types import Headers, ProducerRecord, TopicPartition

log = logging.getLogger(__name__)


class ProducerInterceptor:
    """The methods of an interceptor. Any object with some of them works; a plain callable is an ``on_send``.

    They are called on the producer's event loop, so they must neither block nor be coroutines. Within them ``flush()``
    raises and ``close()`` is a forced close. They may ``send``; records sent from within an interceptor are not
    intercepted, because that would never end.
    """

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Sees the record first, and returns it or a changed one (``record._replace``)."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Headers) -> None:
        """The end of a record that was in a batch: called in record order, before the tasks that await the record wake.

        For a failed record, ``error`` is its DeliveryError, and ``metadata`` has -1 for offset, timestamp and sizes.
        ``headers`` are those sent.
        """

    def on_send_error(self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException) -> None:
        """The end of a record that was never in a batch, and so is not in the log.

        ``record`` is as the last interceptor left it, ``error`` is what ``send`` raised or the delivery ended with, and
        the partition is -1 if none was given. Unless overridden, it calls ``on_acknowledgement``, as in Kafka.
        """
        self.on_acknowledgement(unacknowledged(*topic_partition), error, record.headers or ())

    def close(self) -> None:
        """Called once, when the producer is closed and every record has ended."""


HOOKS = ("on_send", "on_acknowledgement", "on_send_error")


def unacknowledged(topic: str, partition: int) -> RecordMetadata:
    """The metadata of a record that failed: its topic and partition, and -1 for everything else."""
    return RecordMetadata(topic, partition, -1, -1, False, -1, -1)


class _Hook:
    """One method of one interceptor."""

    def __init__(self, interceptor: object, name: str, call: Callable[..., Any]) -> None:
        self.call = call
        self._name = f"{type(interceptor).__qualname__}.{name}" if hasattr(interceptor, name) else repr(interceptor)
        self._raised = 0

    def complain(self, error: Exception) -> None:
        """Logs the 1st, 2nd, 4th, 8th … time it raises, because it may raise for every record."""
        self._raised += 1
        if self._raised & (self._raised - 1) == 0:
            times = f"{self._raised} time{'' if self._raised == 1 else 's'} by now"
            log.error("the interceptor %s raised, %s; it was skipped", self._name, times, exc_info=error)


class ProducerInterceptors:
    """The interceptors of one producer, in the order configured; checked when it is made (ConfigException).

    ``stop(error)`` receives KeyboardInterrupt and SystemExit raised at the end of a record, where there is no caller to
    raise to.
    """

    def __init__(self, interceptors: Sequence[Any], stop: Callable[[BaseException], object]) -> None:
        self._stop = stop
        self._on_send: list[_Hook] = []
        self._on_acknowledgement: list[_Hook] = []
        self._on_send_error: list[_Hook] = []
        for interceptor in interceptors:
            self._add(interceptor)

    def _add(self, interceptor: Any) -> None:
        found = {name: call for name in HOOKS if callable(call := getattr(interceptor, name, None))}
        if not found and callable(interceptor):
            found = {"on_send": interceptor}
        if not found:
            raise _refused(interceptor, f"has none of {', '.join(HOOKS)} and is not callable")
        for name, call in found.items():
            if is_async(call):
                raise _refused(interceptor, f"is asynchronous ({name}): interceptors are called, not awaited")
        if "on_send" in found:
            self._on_send.append(_Hook(interceptor, "on_send", found["on_send"]))
        acknowledged = found.get("on_acknowledgement")
        if acknowledged is not None:
            self._on_acknowledgement.append(_Hook(interceptor, "on_acknowledgement", acknowledged))
        failed = found.get("on_send_error")
        if failed is None and acknowledged is not None:
            failed = partial(ProducerInterceptor.on_send_error, interceptor)
        if failed is not None:
            self._on_send_error.append(_Hook(interceptor, "on_send_error", failed))

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record as the chain leaves it: each interceptor gets what the last one that did not raise returned."""
        for hook in self._on_send:
            try:
                returned = hook.call(record)
                if not isinstance(returned, ProducerRecord) or not isinstance(returned.topic, str):
                    raise TypeError(f"on_send must return a ProducerRecord with a topic, not {returned!r:.100}")
                record = returned
            except Exception as error:
                hook.complain(error)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None, headers: Headers) -> None:
        """Reports the end of a record that was in a batch to all interceptors."""
        self._tell(self._on_acknowledgement, metadata, error, headers)

    def on_send_error(self, record: ProducerRecord, topic_partition: TopicPartition, error: BaseException) -> None:
        """Reports the end of a record that was never in a batch to all interceptors."""
        self._tell(self._on_send_error, record, topic_partition, error)

    def _tell(self, hooks: list[_Hook], *what: object) -> None:
        for hook in hooks:
            try:
                hook.call(*what)
            except Exception as raised:
                hook.complain(raised)
            except BaseException as stop:
                self._stop(stop)


def _refused(interceptor: object, why: str) -> ConfigException:
    return ConfigException(
        f"config 'interceptor.classes' has {interceptor!r:.100}, which {why}",
        name="interceptor.classes",
        value=interceptor,
    )
