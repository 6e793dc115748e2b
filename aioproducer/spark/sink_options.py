"""The sink's options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from aioproducer import KafkaProducer
from aioproducer.errors import IllegalArgumentException
from aioproducer.spark.options import check_known, kafka_configs, one_of, text

AT_LEAST_ONCE, EXACTLY_ONCE = "at-least-once", "exactly-once"

OPTIONS = ("topic", "deliveryGuarantee", "writeId", "markerTopic", "transactionalIdPrefix")

_COLUMNS_ARE_BYTES = "columns are written as they are: cast them, to string or binary, before"
_REFUSED = {
    "key.serializer": _COLUMNS_ARE_BYTES,
    "value.serializer": _COLUMNS_ARE_BYTES,
    "transactional.id": 'each task has its own: set "deliveryGuarantee", and "transactionalIdPrefix" if need be',
}

_LONGEST_TRANSACTION_MS = "900000"
"""What brokers allow by default (transaction.max.timeout.ms), so that a task may take long."""


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
    marker_topic: str | None
    """The topic whose partition 0 carries the markers of exactly-once."""
    prefix: str

    @classmethod
    def of(cls, options: Mapping[str, str], *, streaming: bool) -> Self:
        """IllegalArgumentException or ConfigException for what is wrong with them."""
        check_known(options, OPTIONS, "sink")
        configs = kafka_configs(options, _REFUSED)
        exactly_once = one_of(options, "deliveryGuarantee", (AT_LEAST_ONCE, EXACTLY_ONCE), AT_LEAST_ONCE)
        topic = text(options, "topic")
        chosen = cls(
            configs,
            topic,
            exactly_once == EXACTLY_ONCE,
            text(options, "writeId"),
            text(options, "markerTopic") or topic,
            text(options, "transactionalIdPrefix") or "aioproducer",
        )
        if chosen.exactly_once:
            chosen._check_exactly_once(streaming)
            configs.setdefault("transaction.timeout.ms", _LONGEST_TRANSACTION_MS)
            KafkaProducer.from_config({**configs, "transactional.id": chosen.prefix})
        else:
            for name in ("writeId", "markerTopic", "transactionalIdPrefix"):
                if text(options, name) is not None:
                    raise IllegalArgumentException(f'option "{name}" means something with {EXACTLY_ONCE} only')
            KafkaProducer.from_config(configs)
        return chosen

    def _check_exactly_once(self, streaming: bool) -> None:
        if streaming and self.write_id is not None:
            raise IllegalArgumentException('option "writeId" is for batches: a stream has the id of its query')
        if not streaming and self.write_id is None:
            raise IllegalArgumentException(
                f'{EXACTLY_ONCE} of a batch needs option "writeId": a text that is the same when the same data are '
                "written again, and never for others"
            )
        if self.marker_topic is None:
            raise IllegalArgumentException(
                f'{EXACTLY_ONCE} with a column "topic" needs option "markerTopic": a topic to attach offsets to'
            )
