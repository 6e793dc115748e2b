from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from aioproducer.producer.batches.producer_batch import ProducerBatch
from aioproducer.producer.diagnosis.reason import Reason
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch
from aioproducer.producer.idempotence.sequences import PartitionSequences
from aioproducer.producer.scheduling.readiness import NO_LEADER, ReadySet, why_waiting
from tests.producer.simulations.standing_loop import Loop, make_batch, make_ids


def queue_with(batch: ProducerBatch | None = None, *, sequences: PartitionSequences | None = None) -> PartitionQueue:
    queue = PartitionQueue("t", 0, sequences)
    if batch is not None:
        queue.batches.append(batch)
    return queue


def why(queue: PartitionQueue, now: float = 0.0, *, keep_order: bool = False) -> Reason | None:
    return why_waiting(queue, now, keep_order=keep_order)


def test_nothing() -> None:
    assert why(queue_with()) is Reason.NOTHING


def test_an_open_batch_waits_until_it_is_due() -> None:
    queue = queue_with()
    queue.open = make_batch(Loop(), records=1)
    assert why(queue) is Reason.LINGER
    queue.due = True
    assert why(queue) is None


def test_a_full_batch_waits_for_nothing() -> None:
    assert why(queue_with(make_batch(Loop(), records=1))) is None


def test_a_retry_waits_for_its_back_off_unless_there_is_a_new_leader() -> None:
    batch = make_batch(Loop(), records=1)
    batch.drain_order, batch.retry_at, batch.leader_epoch = 0, 5.0, 7
    queue = queue_with(batch)
    queue.leader_epoch = 7
    assert why(queue, 4.999) is Reason.BACKOFF
    assert why(queue, 5.0) is None
    queue.leader_epoch = 8
    assert why(queue, 0.0) is None
    queue.leader_epoch = 6  # older news are no reason
    assert why(queue, 4.999) is Reason.BACKOFF


def test_with_one_request_at_a_time_what_is_under_way_comes_first() -> None:
    queue = queue_with(make_batch(Loop(), records=1))
    queue.in_flight = 1
    assert why(queue, keep_order=True) is Reason.ORDER
    assert why(queue, keep_order=False) is None
    queue.in_flight = 0
    assert why(queue, keep_order=True) is None


def test_a_new_batch_needs_a_place_in_the_window_and_a_retry_has_one() -> None:
    ids = make_ids()
    sequences = PartitionSequences(ids)
    new = make_batch(Loop(), records=1)
    queue = queue_with(new, sequences=sequences)
    assert why(queue) is Reason.PRODUCER_ID
    ids.current = ProducerIdAndEpoch(1, 0)
    sequences.known_id = 1
    sent = [make_batch(Loop(), records=1) for _ in range(5)]
    for order, batch in enumerate(sent):
        assert why(queue) is None
        sequences.stamp(batch, 0.0, 0)
        batch.drain_order = order
    assert why(queue) is Reason.WINDOW
    queue.insert_retry(sent[3])
    assert why(queue) is Reason.RECOVERY  # one at a time: what was drained before it is not resolved
    queue.insert_retry(sent[0])
    assert why(queue) is None
    queue.batches.popleft()
    queue.batches.popleft()
    sequences.resolve(sent[0])
    assert why(queue) is None


def test_after_a_gap_new_batches_and_those_that_lost_their_sequence_wait_for_the_rest() -> None:
    ids = make_ids()
    ids.current = ProducerIdAndEpoch(1, 0)
    sequences = PartitionSequences(ids)
    first, second, third = (make_batch(Loop(), records=1) for _ in range(3))
    for order, batch in enumerate((first, second, third)):
        batch.drain_order = order
        sequences.stamp(batch, 0.0, 0)
    sequences.abandon(first)
    queue = queue_with(make_batch(Loop(), records=1), sequences=sequences)
    assert why(queue) is Reason.RECOVERY
    third.in_flight = third.maybe_appended = True
    sequences.unstamp(second)
    queue.insert_retry(second)
    assert why(queue) is Reason.RECOVERY
    third.in_flight = False
    queue.insert_retry(third)
    assert queue.batches[0] is third
    assert why(queue) is None
    queue.batches.popleft()
    sequences.resolve(third)
    assert why(queue) is None


class ReadySetMachine(RuleBasedStateMachine):
    """Queues become ready, are looked at and move between nodes; each stands once where its leader is."""

    @initialize()
    def begin(self) -> None:
        self.ready = ReadySet()
        self.queues = [PartitionQueue("t", partition, None) for partition in range(5)]
        self.expected: dict[int, list[PartitionQueue]] = {node: [] for node in (NO_LEADER, 0, 1, 2)}

    @rule(partition=st.integers(0, 4))
    def add(self, partition: int) -> None:
        queue = self.queues[partition]
        if not queue.ready:
            self.expected[queue.leader].append(queue)
        self.ready.add(queue)

    @rule(node=st.sampled_from([NO_LEADER, 0, 1, 2]))
    def take(self, node: int) -> None:
        if self.ready.of(node):
            queue, _ = self.ready.of(node).popitem(last=False)
            queue.ready = False
            assert self.expected[node].pop(0) is queue

    @rule(node=st.sampled_from([NO_LEADER, 0, 1, 2]))
    def serve(self, node: int) -> None:
        others = [other for other in self.ready.nodes() if other != node]
        self.ready.served(node)
        assert self.ready.nodes() == others + ([node] if self.expected[node] else [])

    @rule(node=st.sampled_from([NO_LEADER, 0, 1, 2]), due=st.sets(st.integers(0, 4)))
    def look_for_work(self, node: int, due: set[int]) -> None:
        for queue in self.queues:
            queue.due = queue.partition in due
        expected = self.expected[node]
        if expected:
            assert self.ready.waiting(node) == any(queue.due for queue in expected)
            while expected and not expected[0].due:
                assert not expected.pop(0).ready

    @rule(partition=st.integers(0, 4), leader=st.sampled_from([NO_LEADER, 0, 1, 2]))
    def elect(self, partition: int, leader: int) -> None:
        queue = self.queues[partition]
        old, queue.leader = queue.leader, leader
        self.ready.leader_changed(queue, old)
        if queue.ready and old != leader:
            self.expected[old].remove(queue)
            self.expected[leader].append(queue)

    @invariant()
    def each_stands_once_where_its_leader_is(self) -> None:
        for node, queues in self.expected.items():
            assert list(self.ready.of(node)) == queues
            assert all(queue.ready and queue.leader == node for queue in queues)
        assert sorted(self.ready.nodes()) == [node for node in sorted(self.expected) if self.expected[node]]


ReadySetMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=25)
TestReadySet = ReadySetMachine.TestCase
