"""The reasons outside a partition for which its batches waited.

Shared reasons (no leader, a connection that is down, a full window) are recorded once per node and per partition, at
each change; ledgers look them up.
"""

from __future__ import annotations

from typing import Final

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.diagnosis.ledger import Ledger
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.diagnosis.value_history import ValueHistory

# Read for every request: looking an enum member up is slow.
READY: Final = Reason.READY
SLOW_LINE: Final = Reason.SLOW_LINE
_LINGER: Final = Reason.LINGER
NOTHING: Final = Reason.NOTHING

FORGOTTEN = "waiting, too long ago to tell for what"

# While one of these holds for the node, the partitions' own reasons do not matter.
_FIRST_OF_ALL = frozenset({Reason.NO_LEADER, Reason.LEADER_UNKNOWN, Reason.NOT_CONNECTED, Reason.THROTTLED})

_ALWAYS_READY: ValueHistory[Reason] = ValueHistory(READY)


class WaitHistory:
    """Reasons by node, and for each partition in its queue.

    ``node_is`` and ``reachable`` record the present state; a queue's ``history`` records its leader and its
    head's reasons, and exists from the first entry on.
    """

    def __init__(self) -> None:
        self._nodes: dict[int, ValueHistory[Reason]] = {}
        self._reachable = ValueHistory(False)

    def node_is(self, node: int, now: float, reason: Reason) -> None:
        """Sets what requests to this node wait for from now on; READY if nothing."""
        history = self._nodes.get(node)
        if history is None:
            self._nodes[node] = ValueHistory(reason)
        else:
            history.change(now, reason)

    def reachable(self, now: float, *, any_broker: bool) -> None:
        """Whether there is a connection to any broker."""
        self._reachable.change(now, any_broker)

    def spend_in_queue(self, ledger: Ledger, queue: PartitionQueue, until: float, last_error: str = "") -> None:
        """Books a batch's wait in its queue; back-offs count as time of its own last error, if it had one."""
        own: ValueHistory[tuple[int, Reason]] = queue.history or ValueHistory((queue.leader, Reason.READY))
        for value, end in own.spans(ledger.booked_until, until):
            if value is None:
                ledger.book(end, FORGOTTEN)
                continue
            node, waiting = value
            history = self._nodes.get(node, _ALWAYS_READY)
            for reason, upto in history.spans(ledger.booked_until, end):
                if reason is None:
                    ledger.book(upto, FORGOTTEN)
                elif (weightier := _weightier(reason, waiting)) is Reason.BACKOFF and last_error:
                    ledger.book(upto, last_error, times=0)
                else:
                    ledger.book(upto, weightier.value)

    def spend_on_metadata(self, ledger: Ledger, until: float, cause: str, times: int) -> None:
        """Books the time without metadata: for ``cause``, which occurred ``times`` times, while a broker was
        reachable."""
        for reachable, end in self._reachable.spans(ledger.booked_until, until):
            if reachable is False:
                ledger.book(end, Reason.NO_BROKER.value)
            else:
                ledger.book(end, cause, times)
                times = 0


def _weightier(node: Reason, queue: Reason) -> Reason:
    return node if node in _FIRST_OF_ALL or queue is Reason.READY else queue


def note_wait(queue: PartitionQueue, now: float, reason: Reason) -> None:
    """Sets what the head of the queue waits for from now on; READY if nothing."""
    if reason is _LINGER or reason is NOTHING:
        if reason is NOTHING and queue.in_flight == 0:
            queue.history = None  # no batch is left to need it
        return
    if queue.history is None:
        if reason is READY:
            return
        queue.history = ValueHistory((queue.leader, READY))
    queue.history.change(now, (queue.leader, reason))


def note_leader(queue: PartitionQueue, now: float, old: int) -> None:
    """Records a change of the queue's leader, if batches wait in it."""
    if queue.depth() == 0 and queue.in_flight == 0:
        queue.history = None
        return
    if queue.history is None:
        queue.history = ValueHistory((old, Reason.READY))
    queue.history.change(now, (queue.leader, queue.history.value[1]))
