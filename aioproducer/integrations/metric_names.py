"""What metrics are called elsewhere: Kafka's names, with the group they belong to before them."""

from __future__ import annotations

from aioproducer import MetricName


def joined_name(name: MetricName, separator: str) -> str:
    """``kafka``, the group without ``-metrics``, and the name: ``kafka_producer_topic_byte_rate``.

    Group and name are set apart by ``separator``, words by an underscore.
    """
    group = name.group.removesuffix("-metrics").removeprefix("kafka-")
    return separator.join(part.replace("-", "_") for part in ("kafka", group, name.name))


def is_counter(name: MetricName) -> bool:
    """Whether it only grows, until what it counts is forgotten."""
    return name.name.endswith("-total")
