"""The in-flight windows of partitions, as brokers announce them (KIP-1269).

A broker distinguishes a retry from a new batch by the last batches that it remembers of a producer, 5 or the value of
``producer.state.batches.to.retain``; every answer announces that number (Produce 14). The number of one leader does not
hold for the next: a partition returns to 5 when its leader changes or its connection is lost.
"""

from __future__ import annotations

from enum import Enum

from aioproducer.metrics.registry import MetricRegistry
from aioproducer.metrics.window_metrics import WindowMetrics
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.idempotence.sequences import WINDOW

KIP_1269_VERSION = 14
"""The version of Produce from which on brokers announce the window."""


class WindowSource(Enum):
    """The reasons for a partition's window."""

    ANNOUNCED = "announced by node {}"
    DEFAULT = "the default until node {} announces another"
    OLD_BROKER = "as node {} is a broker before KIP-1269"


class InFlightWindows:
    """Keeps the windows of idempotent producers' partitions; those other than 5 by the node that announced them."""

    def __init__(self, metrics: WindowMetrics | None = None) -> None:
        self._metrics = metrics or WindowMetrics(MetricRegistry(), ())
        self._announced: dict[int, dict[PartitionQueue, None]] = {}

    def announced(self, queue: PartitionQueue, node: int, window: int) -> None:
        """``node`` has answered for the partition. If it no longer leads it, the answer is ignored."""
        sequences = queue.sequences
        if sequences is None or queue.leader != node:
            return
        window = max(window, 1)
        if window == sequences.window:
            return
        sequences.window = window
        self._metrics.discovered()
        if window == WINDOW:
            self._metrics.forget(queue.topic, queue.partition)
        else:
            self._announced.setdefault(node, {})[queue] = None
            self._metrics.show(
                queue.topic,
                queue.partition,
                lambda now: float(sequences.window),
                lambda now: float(len(sequences.unresolved)),
            )

    def leader_changed(self, queue: PartitionQueue) -> None:
        """The partition has another leader, or the same one in another epoch, whose window is unknown."""
        self._reset(queue)

    def connection_lost(self, node: int) -> None:
        """The connection is lost: the next broker at the node's address may be another one, or another version."""
        for queue in self._announced.pop(node, ()):
            if queue.leader == node:
                self._reset(queue)

    def _reset(self, queue: PartitionQueue) -> None:
        sequences = queue.sequences
        if sequences is not None and sequences.window != WINDOW:
            sequences.window = WINDOW
            self._metrics.reset(queue.topic, queue.partition)
