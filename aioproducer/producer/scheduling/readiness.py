"""The rule that says whether a partition's first batch may be sent (``RecordAccumulator.partitionReady``).

Pure rules over a :class:`PartitionQueue` and ``now``. :class:`ReadySet` keeps the partitions that may have something to
send by leader, so that a wake of the Sender costs in proportion to what is ready, not to the number of partitions.
"""

from __future__ import annotations

from collections import OrderedDict

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.diagnosis.reason import Reason

NO_LEADER = -1


def why_waiting(queue: PartitionQueue, now: float, *, keep_order: bool) -> Reason | None:
    """``None`` if the head may be drained now."""
    if queue.batches:
        head = queue.batches[0]
        if head.compressing:
            return Reason.COMPRESSION
        if head.asked_about:
            return Reason.RECOVERY
        # No back-off for a leader elected since the last attempt.
        if head.retry_at > now and queue.leader_epoch <= head.leader_epoch:
            return Reason.BACKOFF
        is_new = head.drain_order < 0
    elif queue.open is not None:
        if not queue.due:
            return Reason.LINGER
        head = queue.open
        is_new = True
    else:
        return Reason.NOTHING
    if keep_order and queue.in_flight > 0:
        return Reason.ORDER
    sequences = queue.sequences
    if sequences is None:
        return None
    if not is_new and head.has_sequence():
        # Retries go one at a time: a later batch is in order only once this one is in the log.
        return None if sequences.is_lowest(head) or sequences.may_follow(head) else Reason.RECOVERY
    if sequences.may_drain_new(head.max_timestamp, head.created, now):
        return None
    if not sequences.has_id():
        return Reason.PRODUCER_ID
    if not sequences.in_transaction():
        return Reason.TRANSACTION
    return Reason.RECOVERY if sequences.broken else Reason.WINDOW


ReadyQueues = OrderedDict[PartitionQueue, None]
"""Queues in the order of their turns. Taking the first and removing any both take constant time."""


class ReadySet:
    """Partitions to check, by leader; each is in it once."""

    def __init__(self) -> None:
        self._by_node: dict[int, ReadyQueues] = {}

    def add(self, queue: PartitionQueue) -> None:
        if not queue.ready:
            queue.ready = True
            self.of(queue.leader)[queue] = None

    def nodes(self) -> list[int]:
        """Nodes with partitions to check, in the order of their turns; may include NO_LEADER."""
        return [node for node, queues in self._by_node.items() if queues]

    def served(self, node: int) -> None:
        """The node has had its turn. One without partitions is forgotten until it has some again, so that a wake of the
        Sender does not walk through all brokers of a cluster."""
        queues = self._by_node.pop(node, None)
        if queues:
            self._by_node[node] = queues

    def of(self, node: int) -> ReadyQueues:
        queues = self._by_node.get(node)
        if queues is None:
            queues = self._by_node[node] = OrderedDict()
        return queues

    def waiting(self, node: int) -> bool:
        """Whether any batch waits for this node. Partitions with nothing left, as after an expiry, are removed."""
        queues = self._by_node[node]
        while queues:
            queue = next(iter(queues))
            if queue.batches or queue.due:
                return True
            del queues[queue]
            queue.ready = False
        return False

    def leader_changed(self, queue: PartitionQueue, old: int) -> None:
        """Moves a queue to the partitions of its new leader."""
        if queue.ready and queue.leader != old:
            del self._by_node[old][queue]
            queue.ready = False
            self.add(queue)
