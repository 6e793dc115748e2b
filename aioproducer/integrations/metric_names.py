"""Names and units of metrics in other systems: Kafka's names, preceded by their group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from aioproducer import MetricName
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import IllegalStateException


def joined_name(name: MetricName, separator: str) -> str:
    """``kafka``, the group without ``-metrics``, and the name: ``kafka_producer_topic_byte_rate``.

    ``separator`` separates group and name; underscores separate words.
    """
    group = name.group.removesuffix("-metrics").removeprefix("kafka-")
    return separator.join(part.replace("-", "_") for part in ("kafka", group, name.name))


def is_counter(name: MetricName) -> bool:
    """Whether the metric never decreases while it exists."""
    return name.name.endswith("-total")


def unit_of(name: MetricName) -> str:
    """The unit in UCUM, as OpenTelemetry requires: ``ms``, ``By/s``, ``1`` for a ratio; empty for a mere count."""
    words = name.name.split("-")
    if words[-1] == "ratio" or words[0] == "compression":
        return "1"
    if words[-1] == "age":
        return "s"
    if "ns" in words:
        return "ns"
    if not {"latency", "time", "linger"}.isdisjoint(words):
        return "ms"
    per_second = "/s" if words[-1] == "rate" else ""
    if not {"byte", "bytes", "size"}.isdisjoint(words):
        return f"By{per_second}"
    return f"1{per_second}" if per_second else ""


class Configured(Protocol):
    """What has a producer's configs."""

    @property
    def config(self) -> ProducerConfig: ...


def check_client_id(producer: Configured, others: Iterable[Configured]) -> None:
    """IllegalStateException if one of the others has the same client.id: their metrics would be indistinguishable."""
    client_id = producer.config.client_id
    if any(other.config.client_id == client_id for other in others):
        raise IllegalStateException(f"another reported producer has client_id={client_id!r}, too: give each its own")
