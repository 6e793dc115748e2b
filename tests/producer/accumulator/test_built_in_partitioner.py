"""The choice of a partition for records without one. What Kafka's BuiltInPartitionerTest asks is asked here, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from aioproducer.producer.accumulator.built_in_partitioner import (
    QUEUES_PER_DRAW,
    BuiltInPartitioner,
    LoadTable,
    Partitioning,
    load_table,
)
from aioproducer.producer.accumulator.partition_queue import PartitionQueue
from tests.producer.simulations.standing_loop import Accumulation, Loop, make_batch


class Dice(Random):
    """Rolls 0, 1, 2, … of ``sides``, over and over."""

    def __init__(self, sides: int) -> None:
        super().__init__(0)
        self.sides = sides
        self.rolled = 0

    def random(self) -> float:
        self.rolled += 1
        return ((self.rolled - 1) % self.sides + 0.5) / self.sides


def make_queues(*depths: int, leaders: dict[int, int] | None = None) -> list[PartitionQueue]:
    """A queue with so many batches per partition; leader 1 unless ``leaders`` has another for the partition."""
    queues = []
    for partition, depth in enumerate(depths):
        queue = PartitionQueue("t", partition, None)
        queue.leader = (leaders or {}).get(partition, 1)
        fill(queue, depth)
        queues.append(queue)
    return queues


def fill(queue: PartitionQueue, depth: int) -> None:
    queue.batches.clear()
    queue.batches.extend(make_batch(Loop(), partition=queue.partition) for _ in range(depth))


def make_partitioner(
    queues: list[PartitionQueue],
    random: Random | None = None,
    *,
    adaptive: bool = True,
    unavailable: Collection[int] = (),
    rack: Collection[int] = (),
) -> BuiltInPartitioner:
    """Of a topic all of whose partitions have had a batch."""
    shared = Partitioning(random or Random(0), adaptive=adaptive, unavailable=lambda: unavailable)
    shared.in_rack = rack
    partitioner = BuiltInPartitioner(shared)
    partitioner.follow(queues)
    for queue in queues:
        partitioner.opened(queue)
    return partitioner


def drawn(partitioner: BuiltInPartitioner, times: int) -> Counter[int]:
    return Counter(partitioner.next().partition for _ in range(times))


def listed(table: LoadTable) -> list[int]:
    """The partition that each number of the table stands for."""
    return [table.partition(number).partition for number in range(table.total)]


def even(counts: Counter[int], weights: dict[int, int]) -> bool:
    """Whether the counts are such as chance makes of these weights: chi-square, exceeded once in a thousand runs."""
    total, weight = sum(counts.values()), sum(weights.values())
    bound = {1: 10.83, 2: 13.82, 3: 16.27, 4: 18.47, 5: 20.52}[len(weights) - 1]
    expected = {partition: total * share / weight for partition, share in weights.items()}
    square = sum((counts[partition] - many) ** 2 / many for partition, many in expected.items())
    return set(counts) <= set(weights) and square < bound


# Without figures


@pytest.mark.parametrize("adaptive", [True, False])
def test_all_partitions_with_a_leader_are_drawn_alike(adaptive: bool) -> None:
    queues = make_queues(*[0] * 6, leaders={1: -1, 4: -1})
    partitioner = make_partitioner(queues, Random(7), adaptive=adaptive)
    assert even(drawn(partitioner, 4000), dict.fromkeys([0, 2, 3, 5], 1))


def test_one_partition_of_two_with_a_leader_is_always_drawn() -> None:
    partitioner = make_partitioner(make_queues(0, 0, leaders={0: -1}))
    assert drawn(partitioner, 100) == {1: 100}


def test_without_any_leader_all_are_drawn() -> None:
    partitioner = make_partitioner(make_queues(0, 0, 0, leaders={0: -1, 1: -1, 2: -1}))
    assert even(drawn(partitioner, 3000), {0: 1, 1: 1, 2: 1})


def test_queues_do_not_matter_when_it_is_not_adaptive() -> None:
    partitioner = make_partitioner(make_queues(9, 0, 3), adaptive=False)
    assert even(drawn(partitioner, 3000), {0: 1, 1: 1, 2: 1})


def test_queues_do_not_matter_before_every_partition_had_a_batch() -> None:
    queues = make_queues(9, 0, 0)
    partitioner = BuiltInPartitioner(Partitioning(Random(1)))
    partitioner.follow(queues)
    partitioner.opened(queues[0])
    partitioner.opened(queues[1])
    partitioner.opened(queues[1])
    assert even(drawn(partitioner, 3000), {0: 1, 1: 1, 2: 1})
    partitioner.opened(queues[2])
    assert even(drawn(partitioner, 3000), {0: 1, 1: 10, 2: 10})


def test_a_partition_that_is_new_has_to_have_a_batch_first() -> None:
    queues = make_queues(9, 0)
    partitioner = make_partitioner(queues)
    assert even(drawn(partitioner, 3000), {0: 1, 1: 10})
    new = PartitionQueue("t", 2, None)
    new.leader = 1
    partitioner.follow([*queues, new])
    assert even(drawn(partitioner, 3000), {0: 1, 1: 1, 2: 1})
    partitioner.opened(new)
    assert even(drawn(partitioner, 3000), {0: 1, 1: 10, 2: 10})


# The table


def test_the_example_of_kafkas_update_partition_load_stats() -> None:
    queues = make_queues(0, 3, 1)
    table = load_table(queues, queues, ())
    assert listed(table) == [0, 0, 0, 0, 1, 2, 2, 2]


def test_frequencies_are_the_reverse_of_the_queues() -> None:
    queues = make_queues(5, 0, 3, 0, 1)
    partitioner = make_partitioner(queues, Dice(21))
    assert drawn(partitioner, 42) == {0: 2, 1: 12, 2: 6, 3: 12, 4: 10}


def test_equal_queues_are_drawn_alike() -> None:
    assert listed(load_table(queues := make_queues(2, 2, 2), queues, ())) == [0, 1, 2]


@given(
    depths=st.lists(st.integers(0, 5), min_size=1, max_size=30),
    leaders=st.lists(st.sampled_from([-1, 1, 2, 3]), min_size=30, max_size=30),
    unavailable=st.sets(st.sampled_from([2, 3])),
)
def test_it_is_the_table_that_a_count_of_all_queues_makes(
    depths: list[int], leaders: list[int], unavailable: set[int]
) -> None:
    queues = make_queues(*depths, leaders=dict(enumerate(leaders)))
    partitions = [queue for queue in queues if queue.leader >= 0]
    table = load_table(partitions, [queue for queue in queues if queue.depth() > 0], unavailable)
    taking_part = [queue for queue in partitions if queue.depth() == 0 or queue.leader not in unavailable]
    longest = max((queue.depth() for queue in taking_part), default=0)
    expected: list[int] = []
    for queue in taking_part:
        expected += [queue.partition] * (longest + 1 - queue.depth())
    assert listed(table) == expected


# What changes


def test_it_follows_the_queues() -> None:
    queues = make_queues(9, 0, 0)
    partitioner = make_partitioner(queues)
    assert even(drawn(partitioner, 3000), {0: 1, 1: 10, 2: 10})
    fill(queues[0], 0)
    assert even(drawn(partitioner, 3000), {0: 1, 1: 1, 2: 1})
    fill(queues[2], 4)
    partitioner.opened(queues[2])
    assert even(drawn(partitioner, 3000), {0: 5, 1: 5, 2: 1})


def test_a_batch_that_comes_back_counts_again() -> None:
    queues = make_queues(0, 0)
    partitioner = make_partitioner(queues)
    queues[0].in_flight = 9
    assert even(drawn(partitioner, 1000), {0: 1, 1: 1})
    queues[0].in_flight = 0
    fill(queues[0], 9)  # all of them are to be tried again
    assert even(drawn(partitioner, 3000), {0: 1, 1: 10})


def test_many_queues_are_not_counted_for_every_draw() -> None:
    counts = 0

    def counted() -> Collection[int]:
        nonlocal counts
        counts += 1
        return ()

    queues = make_queues(*[1] * 20 * QUEUES_PER_DRAW)
    partitioner = BuiltInPartitioner(Partitioning(Random(0), unavailable=counted))
    partitioner.follow(queues)
    for queue in queues:
        partitioner.opened(queue)
    drawn(partitioner, 210)
    assert counts == 10


def test_empty_queues_cost_nothing() -> None:
    """A hundred thousand partitions and one that holds something make a table of three rows."""
    queues = make_queues(*[0] * 100_000)
    fill(queues[70_000], 3)
    table = load_table(queues, [queues[70_000]], ())
    assert table.total == 99_999 * 4 + 1
    assert [table.partition(number).partition for number in (0, 279_999, 280_000, 280_001, table.total - 1)] == [
        0,
        69_999,
        70_000,
        70_001,
        99_999,
    ]


def test_leaders_that_come_and_go() -> None:
    queues = make_queues(0, 0, 0)
    partitioner = make_partitioner(queues)
    queues[1].leader = -1
    partitioner.leaders_changed()
    assert set(drawn(partitioner, 100)) == {0, 2}
    queues[1].leader = 2
    partitioner.leaders_changed()
    assert set(drawn(partitioner, 100)) == {0, 1, 2}


def test_it_leaves_a_partition_that_is_gone() -> None:
    queues = make_queues(0, 0)
    partitioner = make_partitioner(queues)
    partitioner.current = queues[1]
    partitioner.follow(queues[:1])
    assert partitioner.current is None
    assert drawn(partitioner, 20) == {0: 20}
    partitioner.current = queues[0]
    partitioner.follow(queues[:1])
    assert partitioner.current is queues[0]


# Nodes that take nothing


def test_queues_of_an_unavailable_node_are_left_out() -> None:
    queues = make_queues(1, 7, 2, leaders={0: 0, 1: 0, 2: 1})
    partitioner = make_partitioner(queues, unavailable={0})
    assert drawn(partitioner, 50) == {2: 50}


def test_an_empty_queue_takes_part_so_that_the_node_is_tried_again() -> None:
    queues = make_queues(4, 0, 1, leaders={0: 0, 1: 0, 2: 1})
    partitioner = make_partitioner(queues, unavailable={0})
    assert even(drawn(partitioner, 3000), {1: 2, 2: 1})


def test_with_all_nodes_unavailable_all_partitions_are_drawn() -> None:
    partitioner = make_partitioner(make_queues(1, 5, leaders={0: 0, 1: 2}), unavailable={0, 2})
    assert even(drawn(partitioner, 3000), {0: 1, 1: 1})


# Racks


RACK_CASES: list[tuple[dict[int, int], set[int], set[int]]] = [
    ({0: 0, 1: 1, 2: 2}, {1, 2}, {1, 2}),
    ({0: 0, 1: -1, 2: 2}, {1, 2}, {2}),
    ({0: 0, 1: -1, 2: -1}, {1, 2}, {0}),
    ({0: 0, 1: 0, 2: 2}, set(), {0, 1, 2}),
    ({0: -1, 1: -1, 2: -1}, {1}, {0, 1, 2}),
]


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize(("leaders", "rack", "expected"), RACK_CASES)
def test_partitions_led_from_the_rack_go_first(
    leaders: dict[int, int], rack: set[int], expected: set[int], adaptive: bool
) -> None:
    partitioner = make_partitioner(make_queues(0, 0, 0, leaders=leaders), rack=rack, adaptive=adaptive)
    assert set(drawn(partitioner, 100)) == expected


def test_within_the_rack_queues_count() -> None:
    queues = make_queues(0, 0, 4, 1, leaders={0: 7, 1: 7})
    partitioner = make_partitioner(queues, rack={1})
    assert even(drawn(partitioner, 2000), {2: 1, 3: 4})


def test_with_nobody_available_in_the_rack_the_others_are_drawn() -> None:
    queues = make_queues(2, 0, 1, leaders={0: 0, 1: 1, 2: 1})
    partitioner = make_partitioner(queues, rack={0}, unavailable={0})
    assert even(drawn(partitioner, 3000), {1: 2, 2: 1})


# In the accumulator: when it switches


def partition_of(delivery: Any) -> int:
    partition: int = delivery._result.partition
    return partition


def sequential(partitions: int, *, batch_size: int, adaptive: bool = False) -> tuple[Accumulation, Dice]:
    """An accumulator that draws partitions 0, 1, 2, … in turn."""
    here, dice = Accumulation(memory=2**20, batch_size=batch_size), Dice(partitions)
    here.partitioning = Partitioning(dice, adaptive=adaptive, unavailable=lambda: here.unavailable)
    here.add_topic("t", partitions)
    return here, dice


def test_a_switch_waits_for_the_batch_to_be_complete() -> None:
    here, dice = sequential(3, batch_size=1024)
    assert [partition_of(here.append(value=value)) for value in (b"small", bytes(1024))] == [0, 0]
    assert dice.rolled == 1  # although it is past batch.size now
    assert [partition_of(here.append(value=bytes(1024))) for _ in range(3)] == [1, 2, 0]
    assert dice.rolled == 4


def test_no_switch_leaves_part_of_a_batch_behind() -> None:
    """Two thirds of a batch linger and leave, again and again: each takes all there is."""
    here, _ = sequential(3, batch_size=512)
    for _ in range(10):
        partitions = {partition_of(here.append(value=bytes(32))) for _ in range(512 * 2 // 3 // 40)}
        assert len(partitions) == 1
        (queue,) = [queue for queue in here.accumulator.topics["t"].queues if queue.open is not None]
        here.accumulator.close_batch(queue)


def test_twice_batch_size_is_enough_whatever_the_batch_holds() -> None:
    """Records with a key keep a batch open in the partition; that does not keep the others there for ever."""
    here, dice = sequential(2, batch_size=512)
    queues = here.accumulator.topics["t"].queues
    charged = here.accumulator.record_size(bytes(100), None, None) - 61
    sent = 0
    while partition_of(here.append(value=bytes(100))) == 0:
        sent += charged
        here.accumulator.close_batch(queues[0])
        here.append(partition=0, value=b"has a partition")
    assert 2 * 512 <= sent < 2 * 512 + charged
    assert dice.rolled == 2


def test_one_partition_is_switched_to_again_and_again() -> None:
    here, dice = sequential(1, batch_size=100)
    assert [partition_of(here.append(value=bytes(100))) for _ in range(10)] == [0] * 10
    assert dice.rolled == 10


def test_queues_that_grow_while_appending_count() -> None:
    here, dice = sequential(3, batch_size=128, adaptive=True)
    for partition, depth in enumerate((1, 7, 2)):
        for _ in range(depth):
            here.append(partition=partition, value=bytes(128))
    dice.sides = 14  # 7 + 1 + 6: what the partitions weigh
    topic = here.accumulator.topics["t"]
    counts: Counter[int] = Counter()
    for _ in range(28):
        queue = topic.partitioner.next()
        counts[queue.partition] += 1
    assert counts == {0: 14, 1: 2, 2: 12}
    here.unavailable = {1}  # leads them all, and all hold something
    topic.queues[2].leader = 5
    topic.partitioner.leaders_changed()
    here.append(value=bytes(128))  # to where it is
    for _ in range(10):
        assert partition_of(here.append(value=bytes(128))) == 2


class PartitionerMachine(RuleBasedStateMachine):
    """Whatever becomes of batches, partitions and leaders: it draws as if it had just counted all queues."""

    @initialize(partitions=st.integers(1, 8), rack=st.sets(st.sampled_from([1, 2])))
    def start(self, partitions: int, rack: set[int]) -> None:
        self.dice = Dice(1)
        self.unavailable: set[int] = set()
        self.rack = rack
        self.used: set[PartitionQueue] = set()
        self.queues: list[PartitionQueue] = []
        shared = Partitioning(self.dice, unavailable=lambda: self.unavailable)
        shared.in_rack = rack
        self.partitioner = BuiltInPartitioner(shared)
        self.grow(partitions, 1, used=True)

    @rule(by=st.integers(1, 3), leader=st.integers(-1, 2), used=st.booleans())
    def grow(self, by: int, leader: int, used: bool) -> None:
        for _ in range(by):
            self.queues.append(PartitionQueue("t", len(self.queues), None))
            self.queues[-1].leader = leader
        self.partitioner.follow(self.queues)
        for queue in self.queues[-by:] if used else ():
            self.open(queue, 1)

    @precondition(lambda self: len(self.queues) > 1)
    @rule(to=st.integers(1, 3))
    def shrink(self, to: int) -> None:
        self.queues = self.queues[:to]
        self.partitioner.follow(self.queues)

    @rule(data=st.data(), leader=st.integers(-1, 2))
    def move(self, data: st.DataObject, leader: int) -> None:
        data.draw(st.sampled_from(self.queues)).leader = leader
        self.partitioner.leaders_changed()

    @rule(nodes=st.sets(st.sampled_from([1, 2])))
    def slow(self, nodes: set[int]) -> None:
        self.unavailable = nodes

    def open(self, queue: PartitionQueue, times: int) -> None:
        for _ in range(times):
            self.used.add(queue)
            queue.batches.append(make_batch(Loop()))
            self.partitioner.opened(queue)

    @rule(data=st.data(), times=st.integers(1, 4))
    def append(self, data: st.DataObject, times: int) -> None:
        self.open(data.draw(st.sampled_from(self.queues)), times)

    @rule()
    def drain_all(self) -> None:
        for queue in self.queues:
            queue.in_flight += len(queue.batches)
            queue.batches.clear()

    @precondition(lambda self: any(queue.batches for queue in self.queues))
    @rule(data=st.data(), sent=st.booleans())
    def drain(self, data: st.DataObject, sent: bool) -> None:
        queue = data.draw(st.sampled_from([queue for queue in self.queues if queue.batches]))
        queue.batches.popleft()
        queue.in_flight += sent  # else it expired

    @precondition(lambda self: any(queue.in_flight for queue in self.queues))
    @rule(data=st.data(), again=st.booleans())
    def end(self, data: st.DataObject, again: bool) -> None:
        queue = data.draw(st.sampled_from([queue for queue in self.queues if queue.in_flight]))
        queue.in_flight -= 1
        if again:
            queue.batches.appendleft(make_batch(Loop()))

    @rule(times=st.integers(1, 5))
    def draw(self, times: int) -> None:
        for _ in range(times):
            assert self.partitioner.next() in self.queues

    def weights(self) -> dict[int, int]:
        """What each partition weighs, by the rules."""
        with_leader = [queue for queue in self.queues if queue.leader >= 0]
        in_rack = [queue for queue in with_leader if queue.leader in self.rack]
        if self.used.issuperset(self.queues):
            for group in (in_rack, with_leader):
                taking_part = [queue for queue in group if not queue.depth() or queue.leader not in self.unavailable]
                longest = max((queue.depth() for queue in taking_part), default=0)
                if taking_part:
                    return {queue.partition: longest + 1 - queue.depth() for queue in taking_part}
        return {queue.partition: 1 for queue in in_rack or with_leader or self.queues}

    @invariant()
    def it_draws_by_the_rules(self) -> None:
        if not hasattr(self, "queues"):
            return
        self.partitioner.leaders_changed()  # no figures of before
        expected = self.weights()
        drawn: Counter[int] = Counter()
        self.dice.sides, self.dice.rolled = sum(expected.values()), 0
        for _ in range(self.dice.sides):
            drawn[self.partitioner.next().partition] += 1
        assert drawn == expected


PartitionerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestPartitioner = PartitionerMachine.TestCase
