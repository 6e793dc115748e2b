"""The names of metrics in other systems: Kafka's names, preceded by their group."""

from __future__ import annotations

from aioproducer import MetricName


def joined_name(name: MetricName, separator: str) -> str:
    """``kafka``, the group without ``-metrics``, and the name: ``kafka_producer_topic_byte_rate``.

    ``separator`` separates group and name; underscores separate words.
    """
    group = name.group.removesuffix("-metrics").removeprefix("kafka-")
    return separator.join(part.replace("-", "_") for part in ("kafka", group, name.name))


def is_counter(name: MetricName) -> bool:
    """Whether the metric only grows, until what it counts is forgotten."""
    return name.name.endswith("-total")
