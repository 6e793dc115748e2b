from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.diagnosis.ledger import MAX_ENTRIES, Ledger
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.diagnosis.value_history import REMEMBERED
from aioproducer.producer.scheduling.readiness import NO_LEADER
from aioproducer.producer.scheduling.wait_history import FORGOTTEN, WaitHistory, note_leader, note_wait
from aioproducer.types import LedgerEntry
from tests.producer.simulations.standing_loop import Loop, make_batch

READY = Reason.READY


def spent(history: WaitHistory, queue: PartitionQueue, start: float, end: float) -> dict[str, float]:
    ledger = Ledger(start)
    history.spend_in_queue(ledger, queue, end)
    return {entry.cause: entry.seconds for entry in ledger.entries()}


def test_no_leader_then_a_leader_that_is_not_connected() -> None:
    history, queue = WaitHistory(), PartitionQueue("t", 0, None)
    history.node_is(NO_LEADER, 0.0, Reason.NO_LEADER)
    queue.open = make_batch(Loop(), records=1)
    queue.leader = 1
    note_leader(queue, 10.0, NO_LEADER)
    history.node_is(1, 10.0, Reason.NOT_CONNECTED)
    history.node_is(1, 14.0, READY)
    assert spent(history, queue, 5.0, 15.0) == {"no leader": 5.0, "leader not connected": 4.0, "ready": 1.0}


def test_the_reason_of_a_partition_counts_while_its_leader_is_ready() -> None:
    history, queue = WaitHistory(), PartitionQueue("t", 0, None)
    queue.leader = 1
    queue.in_flight = 5
    history.node_is(1, 0.0, READY)
    note_wait(queue, 1.0, Reason.WINDOW)
    history.node_is(1, 3.0, Reason.CONNECTION_WINDOW)
    history.node_is(1, 4.0, Reason.NOT_CONNECTED)
    history.node_is(1, 9.0, READY)
    note_wait(queue, 10.0, READY)
    history.node_is(1, 11.0, Reason.CONNECTION_WINDOW)
    assert spent(history, queue, 0.0, 12.0) == {
        "ready": 2.0,
        "partition's window full": 4.0,
        "leader not connected": 5.0,
        "connection's window full": 1.0,
    }


def test_a_partition_in_which_nothing_waits_remembers_nothing() -> None:
    queue = PartitionQueue("t", 0, None)
    note_wait(queue, 1.0, READY)
    note_wait(queue, 1.0, Reason.LINGER)
    note_leader(queue, 1.0, NO_LEADER)
    assert queue.history is None
    note_wait(queue, 1.0, Reason.BACKOFF)
    assert queue.history is not None
    note_wait(queue, 2.0, Reason.NOTHING)
    assert queue.history is None


def test_a_new_leader_does_not_change_what_the_partition_waits_for() -> None:
    history, queue = WaitHistory(), PartitionQueue("t", 0, None)
    queue.in_flight = 1
    note_wait(queue, 1.0, Reason.RECOVERY)
    queue.leader = 2
    note_leader(queue, 2.0, 1)
    assert spent(history, queue, 1.0, 3.0) == {"gap in the sequence numbers": 2.0}


def test_metadata_cannot_be_had_without_a_broker() -> None:
    history, ledger = WaitHistory(), Ledger(0.0)
    history.reachable(4.0, any_broker=True)
    history.reachable(6.0, any_broker=False)
    history.reachable(7.0, any_broker=True)
    history.spend_on_metadata(ledger, 10.0, "UNKNOWN_TOPIC_OR_PARTITION", 12)
    assert ledger.entries() == (
        LedgerEntry("no connection to any broker", 5.0, 2),
        LedgerEntry("UNKNOWN_TOPIC_OR_PARTITION", 5.0, 12),
    )


Step = tuple[str, float, int]
steps = st.lists(
    st.tuples(st.sampled_from(["node", "wait", "leader", "attempt"]), st.floats(0, 10), st.integers(0, 100)),
    max_size=80,
)
NODE_REASONS = [READY, Reason.NOT_CONNECTED, Reason.THROTTLED, Reason.CONNECTION_WINDOW, Reason.SOCKET]
QUEUE_REASONS = [READY, Reason.WINDOW, Reason.RECOVERY, Reason.BACKOFF, Reason.PRODUCER_ID, Reason.ORDER, Reason.LINGER]


@given(steps, st.floats(0, 10))
def test_the_ledger_covers_all_time_from_creation_to_expiry(steps: list[Step], last: float) -> None:
    history, queue = WaitHistory(), PartitionQueue("t", 0, None)
    queue.in_flight = 1
    now = created = 100.0
    ledger = Ledger(created)
    for what, wait, choice in steps:
        now += wait
        if what == "node":
            history.node_is(choice % 3, now, NODE_REASONS[choice % len(NODE_REASONS)])
        elif what == "wait":
            note_wait(queue, now, QUEUE_REASONS[choice % len(QUEUE_REASONS)])
        elif what == "leader":
            old, queue.leader = queue.leader, choice % 4 - 1
            note_leader(queue, now, old)
        else:
            history.spend_in_queue(ledger, queue, now - wait / 2)
            ledger.book(now, f"ERROR_{choice}")
    now += last
    history.spend_in_queue(ledger, queue, now)
    entries = ledger.entries()
    assert math.isclose(sum(entry.seconds for entry in entries), now - created, abs_tol=1e-6)
    assert all(entry.seconds >= 0 for entry in entries)
    assert len(entries) <= MAX_ENTRIES


def test_forgotten_waiting_time_is_listed_as_forgotten() -> None:
    history, queue = WaitHistory(), PartitionQueue("t", 0, None)
    queue.leader, queue.in_flight = 1, 1
    for now in range(4 * REMEMBERED):
        note_wait(queue, float(now), Reason.WINDOW if now % 2 else READY)
    waited = spent(history, queue, 0.0, 4.0 * REMEMBERED)
    assert waited[FORGOTTEN] == 3.0 * REMEMBERED
    assert waited["partition's window full"] == REMEMBERED / 2
