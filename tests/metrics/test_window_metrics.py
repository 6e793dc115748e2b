from __future__ import annotations

from aioproducer.metrics import ProducerMetrics
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.windows.in_flight_windows import InFlightWindows
from tests.producer.simulations.standing_loop import make_ids
from tests.support.exhaust import exhaust

GROUP = "producer-partition-metrics"


def make_queue(partition: int) -> PartitionQueue:
    queue = PartitionQueue("t", partition, PartitionSequences(make_ids()))
    queue.leader = 1
    return queue


def published(metrics: ProducerMetrics) -> dict[str | None, tuple[float, float]]:
    """Window and batches in flight of each partition that has the metrics."""
    found = metrics.snapshot(0.0).select(GROUP)
    partitions = {name.tag("partition") for name in found}
    select = {partition: found.select(partition=partition or "") for partition in partitions}
    return {key: tuple(value for _, value in sorted(of.items()))[::-1] for key, of in select.items()}  # type: ignore[misc]


def counts(metrics: ProducerMetrics) -> tuple[float, float]:
    found = metrics.snapshot(0.0)
    return found["in-flight-windows-discovered-total"], found["in-flight-windows-reset-total"]


def test_windows_are_shown_where_they_are_not_the_default() -> None:
    metrics = ProducerMetrics("me")
    windows = InFlightWindows(metrics.windows)
    first, second = make_queue(0), make_queue(1)
    windows.announced(first, 1, 5)
    assert (published(metrics), counts(metrics)) == ({}, (0, 0))
    windows.announced(first, 1, 20)
    windows.announced(first, 1, 20)
    windows.announced(second, 1, 7)
    assert (published(metrics), counts(metrics)) == ({"0": (20, 0), "1": (7, 0)}, (2, 0))
    windows.announced(first, 1, 5)
    assert (published(metrics), counts(metrics)) == ({"1": (7, 0)}, (3, 0))
    windows.announced(first, 1, 30)
    windows.leader_changed(first)
    assert (published(metrics), counts(metrics)) == ({"1": (7, 0)}, (4, 1))
    windows.connection_lost(1)
    assert (published(metrics), counts(metrics)) == ({}, (4, 2))


def test_a_topic_that_is_forgotten_loses_them_until_it_is_used_again() -> None:
    metrics = ProducerMetrics("me")
    windows, queues = InFlightWindows(metrics.windows), [make_queue(0), make_queue(1)]
    for queue in queues:
        windows.announced(queue, 1, 20)
    exhaust(metrics.keeping_topics({"t"}))
    assert published(metrics) == {"0": (20, 0), "1": (20, 0)}
    exhaust(metrics.keeping_topics({"u"}))
    assert published(metrics) == {}
    windows.leader_changed(queues[1])
    exhaust(metrics.keeping_topics({"t", "u"}))
    windows.announced(queues[0], 1, 20)  # nothing new
    assert published(metrics) == {"0": (20, 0)}
    exhaust(metrics.keeping_topics({"u"}))
    windows.announced(queues[0], 1, 30)
    assert published(metrics) == {"0": (30, 0)}
