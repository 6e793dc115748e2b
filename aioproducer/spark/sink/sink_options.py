"""The sink's options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from aioproducer import KafkaProducer, TopicPartition
from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.options import check_known, flag, kafka_configs, number, one_of, text, without_ignored

AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"

DEFAULT_PREFIX = "aioproducer"

TOPIC = "topic:"
"""Begins the name of a delivery log that is a topic, not a directory."""

_EXACTLY_ONCE_ONLY = ("writeId", "writeEpoch", "markerTopic", "transactionalIdPrefix", "allowMissingMarker")
OPTIONS = ("topic", "deliveryGuarantee", "deliveryLog", *_EXACTLY_ONCE_ONLY)

_COLUMNS_ARE_BYTES = "columns are written as they are: cast them, to string or binary, before"
_REFUSED = {
    "key.serializer": _COLUMNS_ARE_BYTES,
    "value.serializer": _COLUMNS_ARE_BYTES,
    "transactional.id": 'each task has its own: set "deliveryGuarantee", or also "transactionalIdPrefix"',
}

_IGNORED = {
    "includeHeaders": 'headers are written if there is a column "headers"',
    "kafka.group.id": "a sink has no consumer group",
}

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

_LONGEST_TRANSACTION_MS = "900000"
"""What brokers allow by default (transaction.max.timeout.ms), so that a task may take long."""

_BATCH_SIZE = str(64 * 1024)
"""Instead of Kafka's 16 KiB. No caller waits for a single row of a task, and what a batch costs the broker, whatever
its size, is much of what rows of 1,000 B cost (docs/performance.md)."""


@dataclass(frozen=True)
class SinkOptions:
    """Checked, as far as that can be done without a broker."""

    configs: Mapping[str, str] = field(repr=False)
    """The configs of the tasks' producers, by their dotted names."""
    topic: str | None
    """The topic of every row; None if the column ``topic`` names it for each."""
    exactly_once: bool
    write_id: str | None
    """For a batch: identifies it when it is written again."""
    write_epoch: int
    """For a batch: its number among the batches of the same ``write_id``; it rises from one to the next."""
    marker_topic: str | None
    """The topic whose partition 0 carries the markers; None if there are none."""
    prefix: str
    allow_missing_marker: bool
    """Whether an epoch is written although the markers of those before it are gone."""
    delivery_log: str | None
    """A directory, or ``topic:`` and a name: where tasks log the outcome of each row."""

    @classmethod
    def of(cls, given: Mapping[str, str], *, streaming: bool) -> Self:
        """IllegalArgumentException or ConfigException for what is wrong with them."""
        options = without_ignored(given, _IGNORED, "sink")
        check_known(options, OPTIONS, "sink")
        configs = {"batch.size": _BATCH_SIZE, **kafka_configs(options, _REFUSED)}
        guarantee = one_of(options, "deliveryGuarantee", (AT_LEAST_ONCE, EXACTLY_ONCE), AT_LEAST_ONCE)
        topic = text(options, "topic")
        chosen = cls(
            configs=configs,
            topic=topic,
            exactly_once=guarantee == EXACTLY_ONCE,
            write_id=text(options, "writeId"),
            write_epoch=number(options, "writeEpoch") or 0,
            marker_topic=text(options, "markerTopic") or topic,
            prefix=text(options, "transactionalIdPrefix") or DEFAULT_PREFIX,
            allow_missing_marker=flag(options, "allowMissingMarker"),
            delivery_log=_delivery_log(options, topic),
        )
        named = [name for name in _EXACTLY_ONCE_ONLY if text(options, name) is not None]
        if chosen.exactly_once:
            chosen._check_exactly_once(named, streaming)
            configs.setdefault("transaction.timeout.ms", _LONGEST_TRANSACTION_MS)
            KafkaProducer.from_config({**configs, "transactional.id": chosen.prefix})
        elif named:
            raise IllegalArgumentException(f'option "{named[0]}" is for {EXACTLY_ONCE} only')
        else:
            KafkaProducer.from_config(configs)
        return chosen

    @property
    def marker_place(self) -> TopicPartition:
        """Where the markers of exactly-once are committed."""
        assert self.marker_topic is not None
        return TopicPartition(self.marker_topic, 0)

    def _check_exactly_once(self, given: Sequence[str], streaming: bool) -> None:
        for name in ("writeId", "writeEpoch"):
            if streaming and name in given:
                raise IllegalArgumentException(
                    f'option "{name}" is for batches: a stream has the id of its query, and its epochs'
                )
        if not streaming and self.write_id is None:
            raise IllegalArgumentException(
                f'{EXACTLY_ONCE} of a batch needs option "writeId": a text that is the same when the same data are '
                'written again, and never for others with the same "writeEpoch"'
            )
        if self.marker_topic is None:
            raise IllegalArgumentException(
                f'{EXACTLY_ONCE} with a column "topic" needs option "markerTopic": a topic to attach offsets to'
            )


def _delivery_log(options: Mapping[str, str], topic: str | None) -> str | None:
    given = text(options, "deliveryLog")
    if given is None:
        return None
    name = given.removeprefix(TOPIC)
    if name == given and _SCHEME.match(given):
        raise IllegalArgumentException(
            f'option "deliveryLog" is "{given}"; it must be {TOPIC} and the name of a topic, or a directory that the '
            "tasks find in their own file system"
        )
    if name != given and (not name or name == topic):
        raise IllegalArgumentException(
            f'option "deliveryLog" is "{given}"; it must name a topic, another one than that of the rows'
        )
    return given
