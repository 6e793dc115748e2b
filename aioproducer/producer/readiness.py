"""Whether a partition's head may be sent, and why (``RecordAccumulator.partitionReady``, seed 000).

Pure rules over a :class:`PartitionQueue` and ``now``. :class:`ReadySet` keeps the partitions that may have something to
send by the node that leads them, so that a wake of the Sender costs in proportion to what is ready, not to how many
partitions there are.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum

from aioproducer.producer.partition_queue import PartitionQueue

NO_LEADER = -1


class Wait(Enum):
    """Why the head of a partition stays where it is."""

    NOTHING = "nothing is waiting"
    LINGER = "its batch is not full and has not lingered for linger.ms"
    BACKOFF = "it waits for its retry back-off"
    WINDOW = "the partition's in-flight window is full"
    RECOVERY = "a gap in its sequences waits for earlier batches to end"
    ORDER = "max.in.flight.requests.per.connection=1: an earlier batch is under way"


def why_waiting(queue: PartitionQueue, now: float, *, keep_order: bool) -> Wait | None:
    """``None`` if the head may be drained now."""
    if queue.batches:
        head = queue.batches[0]
        # A leader that was elected since the last attempt owes us no patience.
        if head.retry_at > now and queue.leader_epoch <= head.leader_epoch:
            return Wait.BACKOFF
        is_new = head.drain_order < 0
    elif queue.open is not None:
        if not queue.due:
            return Wait.LINGER
        is_new = True
    else:
        return Wait.NOTHING
    if keep_order and queue.in_flight > 0:
        return Wait.ORDER
    sequences = queue.sequences
    if sequences is None:
        return None
    if not is_new and queue.batches[0].has_sequence():
        # Retries go one at a time: what comes after is in order only when this one is in the log.
        return None if sequences.is_lowest(queue.batches[0]) else Wait.RECOVERY
    if sequences.may_drain_new():
        return None
    return Wait.RECOVERY if sequences.broken else Wait.WINDOW


ReadyQueues = OrderedDict[PartitionQueue, None]
"""In the order of their turns. Taking the first and taking out any both cost the same however many there are."""


class ReadySet:
    """Partitions to look at, by leader; each stands in it once."""

    def __init__(self) -> None:
        self._by_node: dict[int, ReadyQueues] = {}

    def add(self, queue: PartitionQueue) -> None:
        if not queue.ready:
            queue.ready = True
            self.of(queue.leader)[queue] = None

    def nodes(self) -> list[int]:
        """Nodes with partitions to look at; NO_LEADER among them."""
        return [node for node, queues in self._by_node.items() if queues]

    def of(self, node: int) -> ReadyQueues:
        queues = self._by_node.get(node)
        if queues is None:
            queues = self._by_node[node] = OrderedDict()
        return queues

    def waiting(self, node: int) -> bool:
        """Whether anything waits for this node. Partitions before it with nothing left, as after an expiry, leave."""
        queues = self._by_node[node]
        while queues:
            queue = next(iter(queues))
            if queue.batches or queue.due:
                return True
            del queues[queue]
            queue.ready = False
        return False

    def leader_changed(self, queue: PartitionQueue, old: int) -> None:
        """The queue has a new leader: it moves to that node's partitions."""
        if queue.ready and queue.leader != old:
            del self._by_node[old][queue]
            queue.ready = False
            self.add(queue)
