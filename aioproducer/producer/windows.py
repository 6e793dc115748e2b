"""The in-flight windows of partitions, as brokers announce them (KIP-1269).

A broker can tell a retry from a new batch by the last batches that it remembers of a producer, 5 or as many as
``producer.state.batches.to.retain`` says; it tells that number with every answer (Produce 14). What is known of one
leader says nothing of the next: a partition begins with 5 again when its leader changes or its connection is lost.
"""

from __future__ import annotations

from aioproducer.producer.partition_queue import PartitionQueue
from aioproducer.producer.sequences import WINDOW


class InFlightWindows:
    """Keeps the windows of idempotent producers' partitions; those other than 5 by the node that announced them."""

    def __init__(self) -> None:
        self._announced: dict[int, dict[PartitionQueue, None]] = {}

    def told(self, queue: PartitionQueue, node: int, window: int) -> None:
        """``node`` has answered for the partition. If it does not lead it any more, it has no say."""
        sequences = queue.sequences
        if sequences is None or queue.leader != node:
            return
        sequences.window = max(window, 1)
        if sequences.window != WINDOW:
            self._announced.setdefault(node, {})[queue] = None

    def leader_changed(self, queue: PartitionQueue) -> None:
        """The partition has another leader, or the same in another epoch: nothing is known of it yet."""
        if queue.sequences is not None:
            queue.sequences.window = WINDOW

    def connection_lost(self, node: int) -> None:
        """Whoever answers at the node's address the next time may be another broker, or another version of it."""
        for queue in self._announced.pop(node, ()):
            if queue.leader == node:
                queue.sequences.window = WINDOW
